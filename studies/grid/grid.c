// A sea in one array of cells. Each step of a day looks at one or two members of every cell.

#include "grid.h"

struct cell cells[CELLS];

static unsigned int state = 12345;

static unsigned int next_number(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

void grid_build(int count) {
    for (int i = 0; i < count; i++) {
        struct cell *cell = &cells[i];
        cell->heat = 4 + next_number() % 16;
        cell->flow = (double)(next_number() % 100) / 1000;
        cell->salt = 30 + (double)(next_number() % 80) / 10;
        cell->depth = next_number() % 4000;
        cell->fish = next_number() % 50;
        cell->caught = 0;
        cell->oxygen = (double)(next_number() % 90) / 10;
        cell->age = next_number() % 3650;
    }
}

/* Moves heat, and gives all of it. */
double grid_flow(int count) {
    double all = 0;
    for (int i = 0; i < count; i++) {
        cells[i].heat -= cells[i].flow;
        all += cells[i].heat;
    }
    return all;
}

double grid_salt(int count) {
    double all = 0;
    for (int i = 0; i < count; i++) {
        all += cells[i].salt;
    }
    return all;
}

long grid_fish(int count) {
    long all = 0;
    for (int i = 0; i < count; i++) {
        cells[i].fish += i & 1;
        all += cells[i].fish;
    }
    return all;
}

double grid_depth(int count) {
    double most = 0;
    for (int i = 0; i < count; i++) {
        most = cells[i].depth > most ? cells[i].depth : most;
    }
    return most;
}

void grid_catch(struct cell *cell) {
    if (cell->fish > 0) {
        cell->fish--;
        cell->caught++;
    }
}

int grid_oldest(int count) {
    int oldest = 0;
    for (int i = 1; i < count; i++) {
        oldest = cells[i].age > cells[oldest].age ? i : oldest;
    }
    return oldest;
}
