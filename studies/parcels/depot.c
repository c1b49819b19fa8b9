// A hash table of parcels: shelves with lists.

#include "depot.h"
#include <stdio.h>
#include <stdlib.h>

static size_t shelf_of(unsigned long number) {
    return (number * 0x9e3779b97f4a7c15ul) >> 50;
}

struct parcel *depot_add(struct depot *depot, unsigned long number) {
    struct parcel **shelf = &depot->shelves[shelf_of(number)];
    struct parcel *parcel = malloc(sizeof(*parcel));
    if (parcel == NULL) {
        return NULL;
    }
    parcel->number = number;
    snprintf(parcel->sender, sizeof(parcel->sender), "shop %lu", number % 977);
    snprintf(parcel->receiver, sizeof(parcel->receiver), "house %lu", number % 7919);
    parcel->weight_kg = 0.5 + (double)(number % 64) / 8;
    parcel->price = 3 + 2 * parcel->weight_kg;
    parcel->arrived = (unsigned int)(number % 31);
    parcel->leaves = parcel->arrived + 2;
    parcel->lorry = number % 13;
    parcel->next = *shelf;
    *shelf = parcel;
    depot->count++;
    return parcel;
}

struct parcel *depot_lookup(struct depot *depot, unsigned long number) {
    struct parcel *parcel = depot->shelves[shelf_of(number)];
    while (parcel != NULL && parcel->number != number) {
        parcel = parcel->next;
    }
    return parcel;
}

int depot_remove(struct depot *depot, unsigned long number) {
    struct parcel **link = &depot->shelves[shelf_of(number)];
    while (*link != NULL && (*link)->number != number) {
        link = &(*link)->next;
    }
    struct parcel *gone = *link;
    if (gone == NULL) {
        return 0;
    }
    *link = gone->next;
    depot->count--;
    free(gone);
    return 1;
}

void depot_close(struct depot *depot) {
    for (size_t shelf = 0; shelf < SHELVES; shelf++) {
        struct parcel *parcel = depot->shelves[shelf];
        while (parcel != NULL) {
            struct parcel *next = parcel->next;
            free(parcel);
            parcel = next;
        }
        depot->shelves[shelf] = NULL;
    }
}
