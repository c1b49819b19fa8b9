// Follows a sea through some days: `grid [COUNT [DAYS]]`.

#include "grid.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : CELLS;
    int days = argc > 2 ? atoi(argv[2]) : 100;
    if (count < 1 || count > CELLS) {
        fprintf(stderr, "grid: between 1 and %d cells\n", CELLS);
        return 1;
    }
    grid_build(count);
    double heat = 0, salt = 0, depth = 0;
    long fish = 0;
    for (int day = 0; day < days; day++) {
        heat += grid_flow(count);
        salt += grid_salt(count);
        fish += grid_fish(count);
        depth += grid_depth(count);
        grid_catch(&cells[day * 7919 % count]);
    }
    int oldest = grid_oldest(count);
    printf("%.2f heat, %.2f salt, %.0f m, %ld fish; the oldest of %d cells: %.0f days, %.1f mg, %ld caught\n", heat, salt,
           depth, fish, count, cells[oldest].age, cells[oldest].oxygen, cells[oldest].caught);
    return 0;
}
