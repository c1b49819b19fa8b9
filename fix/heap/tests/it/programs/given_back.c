/* Memory after a wave of objects: each thread makes some, another one frees them after it ended. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, MANY = 200000 };
static char *all[THREADS][MANY];

static long resident_kib(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1) return -1;
    fclose(file);
    return pages * 4;
}

static void *make(void *row) {
    char **objects = row;
    for (int i = 0; i < MANY; i++) { objects[i] = malloc(100); memset(objects[i], 1, 100); }
    return NULL;
}

int main(int argc, char **argv) {
    memset(all, 1, sizeof all);
    long before = resident_kib();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, make, all[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long most = resident_kib();
    for (int i = 0; i < THREADS; i++) for (int j = 0; j < MANY; j++) free(all[i][j]);
    if (argc > 1 && argv[1][0] == 't') malloc_trim(0);
    long after = resident_kib();
    printf("%ld %ld\n", most - before, after - before);
    return 0;
}
