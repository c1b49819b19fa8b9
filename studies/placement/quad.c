/* A quadtree of a disc: built to a depth along its edge, then the edge is measured. Arguments: depth, turns. */
#include <stdio.h>
#include <stdlib.h>

enum colour { WHITE, BLACK, GREY };

struct quad {
    enum colour colour;
    int child;
    struct quad *parent, *children[4];
};

static int side;

static int is_inside(long x, long y) {
    long half = side / 2, dx = x - half, dy = y - half;
    return dx * dx + dy * dy < half * half * 4 / 5;
}

static enum colour colour(int x, int y, int size) {
    int inside = is_inside(x, y) + is_inside(x + size, y) + is_inside(x, y + size) + is_inside(x + size, y + size);
    if (size >= side / 4) return GREY;
    return inside == 4 ? BLACK : inside == 0 ? WHITE : GREY;
}

static struct quad *build(struct quad *parent, int child, int x, int y, int size) {
    struct quad *quad = malloc(sizeof *quad);
    if (!quad) abort();
    *quad = (struct quad){.colour = colour(x, y, size), .child = child, .parent = parent};
    if (quad->colour == GREY && size > 1)
        for (int i = 0; i < 4; i++)
            quad->children[i] = build(quad, i, x + i % 2 * (size / 2), y + i / 2 * (size / 2), size / 2);
    return quad;
}

/* The neighbour to the right, as large or larger. */
static const struct quad *neighbour(const struct quad *quad) {
    if (!quad->parent) return NULL;
    if (quad->child % 2 == 0) return quad->parent->children[quad->child + 1];
    const struct quad *above = neighbour(quad->parent);
    return above && above->children[0] ? above->children[quad->child - 1] : above;
}

static long edge(const struct quad *quad, int size) {
    if (quad->children[0]) {
        long sum = 0;
        for (int i = 0; i < 4; i++) sum += edge(quad->children[i], size / 2);
        return sum;
    }
    const struct quad *right = neighbour(quad);
    return right && (right->colour == WHITE) != (quad->colour == WHITE) ? size : 0;
}

int main(int argc, char **argv) {
    int depth = argc > 1 ? atoi(argv[1]) : 16, turns = argc > 2 ? atoi(argv[2]) : 6;
    side = 1 << depth;
    const struct quad *quad = build(NULL, 0, 0, 0, side);
    long sum = 0;
    for (int turn = 0; turn < turns; turn++) sum += edge(quad, side);
    printf("%ld\n", sum);
    return 0;
}
