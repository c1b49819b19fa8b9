#ifndef DEPOT_H
#define DEPOT_H

#include <stddef.h>

/* A parcel on a shelf. */
struct parcel {
    unsigned long number;
    char sender[32];    /* Who pays. */
    char receiver[32];
    double weight_kg;
    double price;
    /* Days since the depot was opened. */
    unsigned int arrived;
    unsigned int leaves;
    unsigned long lorry;
    struct parcel *next; /* The next on the shelf. */
};

#define SHELVES 16384

struct depot {
    struct parcel *shelves[SHELVES];
    size_t count;
};

struct parcel *depot_add(struct depot *depot, unsigned long number);
struct parcel *depot_lookup(struct depot *depot, unsigned long number);
int depot_remove(struct depot *depot, unsigned long number);
void depot_close(struct depot *depot);

#endif
