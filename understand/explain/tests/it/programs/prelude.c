#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

struct link {
    struct link *next, *prev;
};

NOINLINE void trace_on(void) { __asm__ volatile("" ::: "memory"); }
NOINLINE void trace_off(void) { __asm__ volatile("" ::: "memory"); }

#define PART(type, name, path, expression)                                                                   \
    printf("part %s %s %zu %zu\n", name, path, offsetof(type, expression), sizeof(((type *)0)->expression))

static void *object(const char *type, size_t size, size_t count)
{
    char *block = calloc(count, size);
    printf("block %p %zu\n", (void *)block, size * count);
    for (size_t i = 0; i < count; i++)
        printf("object %s %p %zu\n", type, (void *)(block + i * size), size);
    return block;
}

static void release(void *block)
{
    printf("release %p\n", block);
    free(block);
}

static void *buffer(size_t size)
{
    void *block = calloc(1, size);
    printf("block %p %zu\n", block, size);
    printf("buffer %p %zu\n", block, size);
    return block;
}

static void maps(void)
{
    char line[512];
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file))
        printf("map %s", line);
    if (file)
        fclose(file);
    int here;
    printf("stack %p\n", (void *)&here);
}
