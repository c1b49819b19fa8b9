#ifndef GRID_H
#define GRID_H

#define CELLS 200000

/* A cell of the sea. */
struct cell {
    double heat;
    double flow;        /* To the next cell. */
    double salt;
    double depth;
    long fish;
    long caught;
    double oxygen;
    double age;         /* In days. */
};

extern struct cell cells[CELLS];

void grid_build(int count);
double grid_flow(int count);
double grid_salt(int count);
long grid_fish(int count);
double grid_depth(int count);
void grid_catch(struct cell *cell);
int grid_oldest(int count);

#endif
