/* Shortest ways in a random graph, by a Fibonacci heap whose nodes are allocated when a vertex is first reached and
   freed when it is left. Arguments: vertices, edges of each, rounds. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *parent, *child, *left, *right;
    long key;
    int vertex, degree, lost;
};

struct edge {
    struct edge *next;
    int to, length;
};

static struct node *least;
static unsigned state = 1;

static unsigned next_random(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void *taken(size_t size) {
    void *at = malloc(size);
    if (!at) abort();
    return at;
}

/* Joins two rings. */
static struct node *joined(struct node *a, struct node *b) {
    if (!a) return b;
    if (!b) return a;
    struct node *a_right = a->right, *b_left = b->left;
    a->right = b, b->left = a;
    b_left->right = a_right, a_right->left = b_left;
    return a;
}

/* Takes a node out of its ring; returns what is left of it. */
static struct node *parted(struct node *n) {
    struct node *rest = n->right == n ? NULL : n->right;
    n->left->right = n->right, n->right->left = n->left;
    n->left = n->right = n;
    return rest;
}

static void add(struct node *n) {
    n->parent = NULL, n->lost = 0;
    least = joined(least, n);
    if (n->key < least->key) least = n;
}

static struct node *inserted(int vertex, long key) {
    struct node *n = taken(sizeof *n);
    n->left = n->right = n, n->child = NULL, n->degree = 0, n->key = key, n->vertex = vertex;
    add(n);
    return n;
}

static struct node *linked(struct node *a, struct node *b) {
    if (b->key < a->key || (b->key == a->key && b->vertex < a->vertex)) {
        struct node *other = a;
        a = b, b = other;
    }
    b->parent = a, b->lost = 0;
    a->child = joined(a->child, b), a->degree++;
    return a;
}

static struct node *take_least(void) {
    struct node *taken_out = least, *roots = parted(least), *by_degree[64] = {0};
    for (struct node *c = taken_out->child; c;) {
        struct node *next = parted(c);
        c->parent = NULL;
        roots = joined(roots, c);
        c = next;
    }
    while (roots) {
        struct node *n = roots;
        roots = parted(n);
        while (by_degree[n->degree]) {
            struct node *other = by_degree[n->degree];
            by_degree[n->degree] = NULL;
            n = linked(n, other);
        }
        by_degree[n->degree] = n;
    }
    least = NULL;
    for (int degree = 0; degree < 64; degree++)
        if (by_degree[degree]) add(by_degree[degree]);
    return taken_out;
}

static void decrease(struct node *n, long key) {
    n->key = key;
    for (struct node *parent = n->parent; parent && (n->lost || n->key < parent->key); parent = n->parent) {
        struct node *rest = parted(n);
        if (parent->child == n) parent->child = rest;
        parent->degree--;
        add(n);
        if (!parent->parent) break;
        if (!parent->lost) {
            parent->lost = 1;
            break;
        }
        n = parent;
    }
    if (!n->parent && n->key < least->key) least = n;
}

int main(int argc, char **argv) {
    int vertices = argc > 1 ? atoi(argv[1]) : 100000, degree = argc > 2 ? atoi(argv[2]) : 4;
    int rounds = argc > 3 ? atoi(argv[3]) : 3;
    struct edge **edges = calloc((size_t)vertices, sizeof *edges);
    struct node **nodes = calloc((size_t)vertices, sizeof *nodes);
    long *ways = taken((size_t)vertices * sizeof *ways), total = 0;
    if (!edges || !nodes) abort();
    for (long i = 0; i < (long)vertices * degree; i++) {
        struct edge *edge = taken(sizeof *edge);
        int from = (int)(i % vertices);
        edge->to = (int)(next_random() % (unsigned)vertices), edge->length = 1 + (int)(next_random() % 1000);
        edge->next = edges[from], edges[from] = edge;
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < vertices; i++) ways[i] = LONG_MAX;
        ways[round] = 0;
        nodes[round] = inserted(round, 0);
        while (least) {
            struct node *n = take_least();
            int from = n->vertex;
            nodes[from] = NULL;
            free(n);
            for (struct edge *edge = edges[from]; edge; edge = edge->next) {
                long way = ways[from] + edge->length;
                if (way >= ways[edge->to]) continue;
                ways[edge->to] = way;
                if (nodes[edge->to]) decrease(nodes[edge->to], way);
                else nodes[edge->to] = inserted(edge->to, way);
            }
        }
        for (int i = 0; i < vertices; i++)
            if (ways[i] != LONG_MAX) total += ways[i];
    }
    printf("%ld\n", total);
    return 0;
}
