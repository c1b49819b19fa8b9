/* Pools that hand out their blocks themselves. A free block holds a link; a block that was handed out holds text,
   numbers or a struct. Only pop and push touch links. */

struct chunk {
    struct chunk *next;
};

struct sized {
    struct sized *next, *previous;
    size_t bytes;
};

struct point {
    int x, y;
    long z;
    char tag[8];
    struct point *peer;
};

#define SLOT 64
#define SLOTS 24

static char area[SLOT * SLOTS] __attribute__((aligned(64)));
static char *heap_area, *sized_area;
static struct chunk *free_static, *free_heap;
static struct sized free_sized;

NOINLINE static void push(struct chunk **list, void *block)
{
    struct chunk *chunk = block;
    chunk->next = *list;
    *list = chunk;
}

NOINLINE static void *pop(struct chunk **list)
{
    struct chunk *chunk = *list;
    *list = chunk->next;
    return chunk;
}

NOINLINE static void push_sized(void *block, size_t bytes)
{
    struct sized *chunk = block;
    chunk->bytes = bytes;
    chunk->previous = &free_sized;
    chunk->next = free_sized.next;
    if (chunk->next != &free_sized)
        chunk->next->previous = chunk;
    free_sized.next = chunk;
}

NOINLINE static void *pop_sized(void)
{
    struct sized *chunk = free_sized.next;
    if (chunk->bytes < 24)
        return 0;
    free_sized.next = chunk->next;
    if (chunk->next != &free_sized)
        chunk->next->previous = &free_sized;
    return chunk;
}

NOINLINE static void write_text(char *text, int k)
{
    for (int i = 0; i < 20; i++) {
        text[i] = 'a' + (i * 7 + k) % 26;
        __asm__ volatile("");
    }
    text[20] = 0;
}

NOINLINE static unsigned read_text(const char *text)
{
    unsigned sum = 0;
    for (; *text; text++)
        sum = sum * 31 + *text;
    return sum;
}

NOINLINE static long use_numbers(unsigned short *numbers, int k)
{
    for (int i = 0; i < 16; i++) {
        numbers[i] = i * k;
        __asm__ volatile("");
    }
    long sum = 0;
    for (int i = 0; i < 16; i++) {
        sum += numbers[i];
        __asm__ volatile("");
    }
    return sum;
}

NOINLINE static long use_point(struct point *point, int k)
{
    point->x = k;
    point->y = k + 1;
    point->z = point->x * 3;
    point->tag[k & 7] = 1;
    point->peer = point;
    return point->peer->z + point->y;
}

NOINLINE static long copied(char *to, const char *from)
{
    memcpy(to, from, 21);
    return strlen(to);
}

NOINLINE static long run_pools(int k)
{
    long sum = 0;
    struct chunk **lists[] = { &free_static, &free_heap };
    for (int i = 0; i < 2; i++) {
        char *text = pop(lists[i]), *other = pop(lists[i]);
        unsigned short *numbers = pop(lists[i]);
        struct point *point = pop(lists[i]);
        write_text(text, k);
        sum += read_text(text) + copied(other, text) + read_text(other);
        sum += use_numbers(numbers, k) + use_point(point, k);
        if (k & 1) {
            push(lists[i], text);
            push(lists[i], point);
            push(lists[i], numbers);
            push(lists[i], other);
        } else {
            push(lists[i], point);
            push(lists[i], numbers);
            push(lists[i], other);
            push(lists[i], text);
        }
    }
    char *text = pop_sized();
    struct point *point = pop_sized();
    write_text(text, k);
    sum += read_text(text) + use_point(point, k);
    push_sized(point, SLOT);
    push_sized(text, SLOT);
    return sum;
}

int main(void)
{
    long sum = 0;
    heap_area = malloc(SLOT * SLOTS);
    sized_area = malloc(SLOT * SLOTS);
    printf("block %p %d\nblock %p %d\n", (void *)heap_area, SLOT * SLOTS, (void *)sized_area, SLOT * SLOTS);
    printf("pool %p %d\npool %p %d\n", (void *)heap_area, SLOT * SLOTS, (void *)sized_area, SLOT * SLOTS);
    printf("links pop chunk\nlinks push chunk\nlinks pop_sized sized\nlinks push_sized sized\n");
    printf("uses write_text char\nuses read_text char\nuses use_numbers short\nuses use_point point\n");
    maps();
    free_sized.next = &free_sized;
    for (int i = 0; i < SLOTS; i++) {
        push(&free_static, area + i * SLOT);
        push(&free_heap, heap_area + i * SLOT);
        push_sized(sized_area + i * SLOT, SLOT);
    }
    for (int round = 0; round < 12; round++) {
        printf("enter\n");
        trace_on();
        sum += run_pools(round);
        trace_off();
    }
    printf("sum %ld\n", sum);
    return 0;
}
