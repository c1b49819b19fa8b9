/* A table of buckets: keys and values come, are looked up in another order, and go. Arguments: keys, turns. */
#include <stdio.h>
#include <stdlib.h>

struct entry {
    struct entry *next;
    unsigned key;
    int *value;
};

static struct entry **buckets;
static unsigned mask;

static unsigned place(unsigned key) { return key * 2654435761u >> 7 & mask; }

static struct entry **find(unsigned key) {
    struct entry **at = &buckets[place(key)];
    while (*at && (*at)->key != key) at = &(*at)->next;
    return at;
}

static void insert(unsigned key) {
    struct entry *entry = malloc(sizeof *entry);
    int *value = malloc(sizeof *value);
    if (!entry || !value) abort();
    *value = (int)(key % 7);
    *entry = (struct entry){buckets[place(key)], key, value};
    buckets[place(key)] = entry;
}

static void erase(unsigned key) {
    struct entry **at = find(key), *entry = *at;
    if (!entry) return;
    *at = entry->next;
    free(entry->value);
    free(entry);
}

int main(int argc, char **argv) {
    unsigned keys = argc > 1 ? (unsigned)atoi(argv[1]) : 300000, turns = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
    for (mask = 1; mask < keys / 2; mask = mask * 2 + 1) {}
    buckets = calloc(mask + 1ul, sizeof *buckets);
    if (!buckets) abort();
    for (unsigned key = 0; key < keys; key++) insert(key);
    long sum = 0;
    for (unsigned turn = 0; turn < turns; turn++) {
        for (unsigned i = 0; i < keys; i++) {
            struct entry *entry = *find(i * 7919u % keys);
            if (entry) sum += *entry->value;
        }
        for (unsigned i = turn; i < keys; i += 3) erase(i);
        for (unsigned i = turn; i < keys; i += 3) insert(i);
    }
    printf("%ld\n", sum);
    return 0;
}
