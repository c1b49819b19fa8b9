/* A binary tree in depth-first order, summed again and again. Arguments: depth, turns. */
#include <stdio.h>
#include <stdlib.h>

struct tree {
    long value;
    struct tree *left, *right;
};

static struct tree *build(int depth) {
    if (depth == 0) return NULL;
    struct tree *node = malloc(sizeof *node);
    if (!node) abort();
    node->value = 1;
    node->left = build(depth - 1);
    node->right = build(depth - 1);
    return node;
}

static long sum(const struct tree *node) {
    return node ? node->value + sum(node->left) + sum(node->right) : 0;
}

int main(int argc, char **argv) {
    int depth = argc > 1 ? atoi(argv[1]) : 20, turns = argc > 2 ? atoi(argv[2]) : 8;
    const struct tree *tree = build(depth);
    long total = 0;
    for (int turn = 0; turn < turns; turn++) total += sum(tree);
    printf("%ld\n", total);
    return 0;
}
