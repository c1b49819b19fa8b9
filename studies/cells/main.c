#include "grid.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
    int steps = argc > 2 ? atoi(argv[2]) : 60;
    struct cell *cells = grid_new(count);
    long sum = 0;

    if (!cells)
        return 1;
    for (int tick = 0; tick < steps; tick++)
        sum = 31 * sum + grid_step(cells, count, tick);
    printf("%zu cells, %d steps: %ld\n", count, steps, sum);
    free(cells);
    return 0;
}
