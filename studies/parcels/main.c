// Looks for parcels in a depot: `parcels [COUNT [ROUNDS]]`.

#include "depot.h"
#include <stdio.h>
#include <stdlib.h>

static struct depot depot;

int main(int argc, char **argv) {
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
    unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 10;
    for (unsigned long number = 0; number < count; number++) {
        if (depot_add(&depot, number) == NULL) {
            perror("parcels");
            return 1;
        }
    }
    for (unsigned long number = 0; number < count; number += 5) {
        depot_remove(&depot, number);
    }
    unsigned long found = 0;
    for (unsigned long round = 0; round < rounds; round++) {
        for (unsigned long number = 0; number < count; number++) {
            found += depot_lookup(&depot, number * 7919 % (count + count / 4)) != NULL;
        }
    }
    double price = 0;
    unsigned int latest = 0;
    for (unsigned long number = 1; number < count; number += 1000) {
        const struct parcel *parcel = depot_lookup(&depot, number);
        if (parcel != NULL) {
            price += parcel->price;
            latest = parcel->leaves > latest ? parcel->leaves : latest;
        }
    }
    printf("%zu parcels, %lu found, %.2f to pay, the last leaves on day %u\n", depot.count, found, price, latest);
    depot_close(&depot);
    return 0;
}
