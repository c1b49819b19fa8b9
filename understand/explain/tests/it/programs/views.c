/* Structs of two words, passed and kept in registers, that hold pointers. Follows prelude.c. */
struct other {
    short low;
    long total;
    unsigned count;
};

struct item {
    long key;
    int weight;
    struct other *other;
    unsigned char kind;
    struct item *next;
    int *ints;
};

struct view {
    struct item *at;
    size_t count;
};

struct pair {
    struct item *from;
    struct other *to;
};

struct counted {
    int left;
    struct other *at;
};

struct text {
    const char *start;
    int length;
};

struct numbers {
    int *at, *end;
};

#define MEMBER(type, member) PART(struct type, #type, #member, member)

NOINLINE static long sum(struct view items)
{
    long sum = 0;
    for (size_t i = 0; i < items.count; i++)
        sum += items.at[i].key + items.at[i].kind;
    return sum;
}

NOINLINE static void bump(struct view items, int k)
{
    for (; items.count; items.at++, items.count--)
        items.at->weight += k;
}

NOINLINE static struct view after(struct view items, long key)
{
    while (items.count && items.at->key < key) {
        items.at++;
        items.count--;
    }
    return items;
}

NOINLINE static long first(struct view items, long key)
{
    struct view rest = after(items, key);
    return rest.count ? rest.at->key + rest.at->other->count : 0;
}

NOINLINE static long join(struct pair both, int k)
{
    both.to->total += both.from->key;
    both.to->low = (short)k;
    both.from->weight ^= k;
    return both.to->count++;
}

NOINLINE static long swapped(struct pair a, struct pair b)
{
    struct pair mixed = { b.from, a.to };
    if (a.from->kind & 1)
        mixed.from = a.from;
    mixed.to->total++;
    return mixed.from->key + b.to->low;
}

NOINLINE static long counted(struct counted all)
{
    long sum = 0;
    while (all.left-- > 0)
        sum += all.at++->total;
    return sum;
}

NOINLINE static int letters(struct text text, char letter)
{
    int count = 0;
    for (int i = 0; i < text.length; i++)
        if (text.start[i] == letter)
            count++;
    return count;
}

NOINLINE static void numbers(struct numbers all, int k)
{
    for (; all.at < all.end; all.at++) {
        *all.at += k;
        __asm__ volatile("" ::: "memory");
    }
}

NOINLINE static long deep(struct view items, int k)
{
    if (items.count < 2)
        return items.at->key;
    struct view left = { items.at, items.count / 2 };
    struct view right = { items.at + left.count, items.count - left.count };
    left.at->weight += k;
    long sum = deep(left, k + 1) + deep(right, k);
    return sum + right.at->kind;
}

static inline struct view part(struct view items, size_t from, size_t count)
{
    struct view all = { items.at + from, count };
    return all;
}

NOINLINE static long inner(struct view items)
{
    long sum = 0;
    for (size_t from = 0; from + 3 <= items.count; from++) {
        struct view three = part(items, from, 3);
        for (struct item *p = three.at; p < three.at + three.count; p++)
            sum += p->next ? p->next->key : p->ints[from & 3];
    }
    return sum;
}

int main(void)
{
    struct view items = { object("item", sizeof(struct item), 12), 12 };
    struct other *others = object("other", sizeof(struct other), 12);
    char *letter = buffer(24);
    int *ints = buffer(10 * sizeof(int));
    long total = 0;
    memcpy(letter, "some letters of a text", 23);
    for (size_t i = 0; i < items.count; i++) {
        items.at[i] = (struct item){ .key = (long)i * 3, .other = &others[11 - i], .kind = (unsigned char)i };
        items.at[i].ints = buffer(4 * sizeof(int));
        items.at[i].next = i & 1 ? &items.at[(i * 5) % 12] : NULL;
    }
    MEMBER(item, key), MEMBER(item, weight), MEMBER(item, other), MEMBER(item, kind), MEMBER(item, next);
    MEMBER(item, ints), MEMBER(other, low), MEMBER(other, total), MEMBER(other, count);
    maps();
    for (int k = 0; k < 4; k++) {
        struct pair one = { &items.at[k], &others[k] }, two = { &items.at[k + 4], &others[k + 5] };
        printf("enter\n");
        trace_on();
        total += sum(items) + first(items, 7 + k) + join(one, k) + swapped(one, two);
        bump(items, k);
        total += counted((struct counted){ 9, others }) + letters((struct text){ letter, 22 }, 't');
        numbers((struct numbers){ ints, ints + 10 }, k);
        total += deep(items, k) + inner(items);
        trace_off();
    }
    printf("sum %ld\n", total);
    return 0;
}
