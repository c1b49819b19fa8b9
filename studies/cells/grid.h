#ifndef GRID_H
#define GRID_H

#include <stddef.h>

enum ground { WATER, GRASS, ROCK };

/* One field of the map. */
struct cell {
    enum ground ground;
    int is_burning;
    int moisture;       /* Per cent. */
    unsigned owner;
    long visits;
    int last_tick;
};

struct cell *grid_new(size_t count);

/* One step of time for every cell; the number that burn. */
long grid_step(struct cell *cells, size_t count, int tick);

#endif
