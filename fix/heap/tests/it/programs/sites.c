/* Objects of two sites through one wrapper, and of a library that is loaded late. Prints how far neighbours lie apart. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void *wrapper(size_t size) {
    void *object = malloc(size);
    if (!object) abort();
    return object;
}

__attribute__((noinline)) static char *one(size_t size) { char *object = wrapper(size); object[0] = 1; return object; }
__attribute__((noinline)) static char *two(size_t size) { char *object = wrapper(size); object[0] = 2; return object; }

int main(int argc, char **argv) {
    enum { MANY = 3000 };
    static char *ones[MANY], *twos[MANY], *lates[MANY];
    for (int i = 0; i < MANY; i++) { ones[i] = one(40); twos[i] = two(40 + i % 2 * 16); }
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    char *(*late)(void) = library ? (char *(*)(void))dlsym(library, "late") : NULL;
    if (late) for (int i = 0; i < MANY; i++) lates[i] = late();
    printf("%td %td\n", ones[MANY - 1] - ones[MANY - 2], lates[MANY - 1] - lates[MANY - 2]);
    for (int i = 0; i < MANY; i++) { free(ones[i]); free(twos[i]); free(lates[i]); }
    return 0;
}
