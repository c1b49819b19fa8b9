#include "grid.h"

#include <stdlib.h>

#define OWNERS 16

static unsigned next_number(void)
{
    static unsigned state = 12345;

    state = 1664525u * state + 1013904223u;
    return state >> 8;
}

struct cell *grid_new(size_t count)
{
    struct cell *cells = malloc(count * sizeof *cells);

    for (size_t at = 0; cells && at < count; at++) {
        struct cell *cell = cells + at;

        cell->ground = next_number() % 5 ? GRASS : next_number() % 2 ? WATER : ROCK;
        cell->moisture = (int)(next_number() % 100);
        cell->owner = next_number() % OWNERS;
        cell->is_burning = 0;
        cell->visits = 0;
        cell->last_tick = 0;
    }
    return cells;
}

long grid_step(struct cell *cells, size_t count, int tick)
{
    long burning = 0;

    for (size_t at = 0; at < count; at++) {
        struct cell *cell = &cells[at];

        cell->visits++;
        cell->last_tick = tick;
        cell->is_burning = cell->ground == GRASS && cell->moisture < 20;
        if (cell->is_burning && cell->owner - 1 < OWNERS / 2)
            burning++;
        cell->moisture = (cell->moisture + 7) % 100;
    }
    return burning;
}
