/* A round trip through random cities: a tree of halves, whose trips are joined by the shortest of their ends; then its
   crossings are undone near each city. Arguments: depth of the tree, turns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct city {
    int size;
    double x, y;
    struct city *left, *right, *next, *prev;
};

static unsigned state = 1;

static double next_random(void) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

static struct city *build(int depth, int is_wide, double x, double y, double width, double height) {
    if (depth == 0) return NULL;
    struct city *city = malloc(sizeof *city);
    if (!city) abort();
    double at = 0.25 + 0.5 * next_random();
    city->next = city->prev = city;
    if (is_wide) {
        city->x = x + at * width, city->y = y + next_random() * height;
        city->left = build(depth - 1, 0, x, y, at * width, height);
        city->right = build(depth - 1, 0, x + at * width, y, (1 - at) * width, height);
    } else {
        city->x = x + next_random() * width, city->y = y + at * height;
        city->left = build(depth - 1, 1, x, y, width, at * height);
        city->right = build(depth - 1, 1, x, y + at * height, width, (1 - at) * height);
    }
    city->size = 1 + (city->left ? city->left->size : 0) + (city->right ? city->right->size : 0);
    return city;
}

static double way(const struct city *a, const struct city *b) {
    double x = a->x - b->x, y = a->y - b->y;
    return sqrt(x * x + y * y);
}

/* Puts the trip of `other` between the city of `trip` that is nearest to it, of at most 64, and the next one. */
static void join(struct city *trip, struct city *other) {
    struct city *best = trip, *at = trip;
    for (int i = 0; i < 64; i++) {
        if (way(at, other) < way(best, other)) best = at;
        at = at->next;
        if (at == trip) break;
    }
    struct city *after = best->next, *last = other->prev;
    best->next = other, other->prev = best;
    last->next = after, after->prev = last;
}

static struct city *conquer(struct city *city) {
    if (!city) return NULL;
    struct city *halves[2] = {conquer(city->left), conquer(city->right)};
    city->next = city->prev = city;
    for (int half = 0; half < 2; half++)
        if (halves[half]) join(halves[half], city);
    return city;
}

/* Moves each city between the two next ones where that is shorter. */
static long improve(struct city *start, int cities) {
    long moved = 0;
    struct city *at = start;
    for (int i = 0; i < cities; i++) {
        struct city *a = at->prev, *b = at->next, *c = b->next;
        if (c != at && a != b && way(a, b) + way(b, at) + way(at, c) < way(a, at) + way(at, b) + way(b, c)) {
            a->next = b, b->prev = a;
            b->next = at, at->prev = b;
            at->next = c, c->prev = at;
            moved++;
        }
        at = at->next;
    }
    return moved;
}

int main(int argc, char **argv) {
    int depth = argc > 1 ? atoi(argv[1]) : 19, turns = argc > 2 ? atoi(argv[2]) : 3;
    struct city *root = build(depth, 1, 0, 0, 1, 1);
    if (!root) return 2;
    long moved = 0;
    for (int turn = 0; turn < turns; turn++) {
        struct city *trip = conquer(root);
        moved += improve(trip, root->size);
    }
    double length = 0;
    long cities = 0;
    struct city *at = root;
    do {
        length += way(at, at->next), at = at->next, cities++;
    } while (at != root);
    printf("%ld of %d cities, %.6f, %ld moved\n", cities, root->size, length, moved);
    return cities == root->size ? 0 : 1;
}
