/* The Delaunay triangulation of random points: each point is put into the triangle that has it, found by a walk from
   the last one, and edges are turned until no circle holds a fourth point. Argument: points. */
#include <stdio.h>
#include <stdlib.h>

struct point {
    double x, y;
};

/* The corners run against the clock; `near[i]` is across from `corners[i]`. */
struct triangle {
    struct point *corners[3];
    struct triangle *near[3];
};

static unsigned state = 1;

static double next_random(void) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

static void *taken(size_t size) {
    void *at = malloc(size);
    if (!at) abort();
    return at;
}

static struct point *point(double x, double y) {
    struct point *p = taken(sizeof *p);
    p->x = x, p->y = y;
    return p;
}

static struct triangle *triangle(struct point *a, struct point *b, struct point *c) {
    struct triangle *t = taken(sizeof *t);
    *t = (struct triangle){{a, b, c}, {NULL, NULL, NULL}};
    return t;
}

static double turn(const struct point *a, const struct point *b, const struct point *c) {
    return (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
}

/* Whether `p` lies in the circle around the triangle. */
static int in_circle(const struct triangle *t, const struct point *p) {
    double m[3][3];
    for (int i = 0; i < 3; i++) {
        double x = t->corners[i]->x - p->x, y = t->corners[i]->y - p->y;
        m[i][0] = x, m[i][1] = y, m[i][2] = x * x + y * y;
    }
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
               m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]) >
           1e-18;
}

static int side_of(const struct triangle *t, const struct triangle *other) {
    for (int i = 0; i < 3; i++)
        if (t->near[i] == other) return i;
    abort();
}

static void meet(struct triangle *t, int side, struct triangle *other, struct triangle *instead_of) {
    t->near[side] = other;
    if (other) other->near[side_of(other, instead_of)] = t;
}

/* Turns the edge across from the new point, corner 0, where the circle holds the corner beyond it. */
static void settle(struct triangle *t) {
    struct triangle *other = t->near[0];
    if (!other) return;
    int side = side_of(other, t);
    struct point *p = t->corners[0], *a = t->corners[1], *b = t->corners[2], *q = other->corners[side];
    if (!in_circle(t, q)) return;
    struct triangle *of_pa = t->near[2], *of_bp = t->near[1];
    struct triangle *of_aq = other->near[(side + 1) % 3], *of_qb = other->near[(side + 2) % 3];
    t->corners[0] = p, t->corners[1] = a, t->corners[2] = q;
    other->corners[0] = p, other->corners[1] = q, other->corners[2] = b;
    t->near[2] = of_pa, t->near[1] = other;
    other->near[1] = of_bp, other->near[2] = t;
    if (of_bp) of_bp->near[side_of(of_bp, t)] = other;
    t->near[0] = of_aq, other->near[0] = of_qb;
    if (of_aq) of_aq->near[side_of(of_aq, other)] = t;
    settle(t);
    settle(other);
}

static struct triangle *find(struct triangle *t, const struct point *p) {
    for (;;) {
        int i = 0;
        while (i < 3 && turn(t->corners[(i + 1) % 3], t->corners[(i + 2) % 3], p) >= 0) i++;
        if (i == 3 || !t->near[i]) return t;
        t = t->near[i];
    }
}

static struct triangle *insert(struct triangle *t, struct point *p) {
    struct point *a = t->corners[0], *b = t->corners[1], *c = t->corners[2];
    struct triangle *of_bc = t->near[0], *of_ca = t->near[1], *of_ab = t->near[2];
    struct triangle *second = triangle(p, c, a), *third = triangle(p, a, b);
    t->corners[0] = p, t->corners[1] = b, t->corners[2] = c;
    t->near[0] = of_bc, t->near[1] = second, t->near[2] = third;
    second->near[1] = third, second->near[2] = t;
    third->near[1] = t, third->near[2] = second;
    meet(second, 0, of_ca, t);
    meet(third, 0, of_ab, t);
    settle(t);
    settle(second);
    settle(third);
    return third;
}

int main(int argc, char **argv) {
    int points = argc > 1 ? atoi(argv[1]) : 30000;
    struct triangle *at = triangle(point(-10, -10), point(20, -10), point(-10, 20));
    double sum = 0;
    for (int i = 0; i < points; i++) {
        struct point *p = point(next_random(), next_random());
        at = insert(find(at, p), p);
        sum += at->corners[1]->x + at->corners[2]->y;
    }
    printf("%d triangles, %.3f\n", 2 * points + 1, sum);
    return 0;
}
