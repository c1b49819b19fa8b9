/* One fault, named by the argument. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *free_it(void *object) { free(object); return NULL; }

int main(int argc, char **argv) {
    const char *fault = argc > 1 ? argv[1] : "";
    char *volatile object = malloc(40), *volatile other = malloc(40);
    static char outside[64];
    pthread_t thread;
    if (!strcmp(fault, "double")) { free(object); free(object); }
    if (!strcmp(fault, "double, realloc")) { free(object); object = realloc(object, 41); }
    if (!strcmp(fault, "inside")) free(object + 16);
    if (!strcmp(fault, "unused")) free(object + 48 * 100);
    if (!strcmp(fault, "unused run")) free((char *)((size_t)object & ~0xffffful) + 0x100000);
    if (!strcmp(fault, "beyond")) free((char *)object + (1ul << 28));
    if (!strcmp(fault, "foreign")) free(outside + 16);
    if (!strcmp(fault, "elsewhere")) {
        pthread_create(&thread, NULL, free_it, object);
        pthread_join(thread, NULL);
        free(object);
    }
    if (!strcmp(fault, "twice elsewhere"))
        for (int i = 0; i < 2; i++) {
            pthread_create(&thread, NULL, free_it, object);
            pthread_join(thread, NULL);
        }
    if (!strcmp(fault, "run given back")) {
        enum { MANY = 20000 };
        static char *all[MANY];
        for (int i = 0; i < MANY; i++) all[i] = malloc(40);
        for (int i = 0; i < MANY; i++) free(all[i]);
        free(all[MANY / 2]);
    }
    free(other);
    puts("unnoticed");
    return 0;
}
