
/* The same types, used in ways that hide what is touched. */

static int order@N(const void *one, const void *other)
{
    const struct T@N *a = one, *b = other;
    int k = 1;
    return (a->@A > b->@A) - (a->@A < b->@A);
}

NOINLINE static void drop@N(struct T@N **at, long key, int k)
{
    while (*at) {
        if ((*at)->@C == key + 12345)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
}

NOINLINE static unsigned bytes@N(const void *from, size_t size)
{
    const unsigned char *at = from;
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + at[i];
    return sum;
}

NOINLINE static long choose@N(struct T@N *p, int what, int k)
{
    switch (what) {
    case 0: return p->@A;
    case 1: return p->@B + 1;
    case 2: p->@C = k; return 2;
    case 3: return p->@D * 3;
    case 4: p->@E += 2; return 4;
    case 5: return p->next ? (long)p->next->@F : 5;
    case 6: return p->text[what] + p->@G;
    case 7: p->@H = what; return 7;
    default: return 0;
    }
}

struct visit@N {
    long (*each)(struct T@N *, void *);
    void *context;
    int depth;
};

static long add@N(struct T@N *p, void *context)
{
    int k = 1;
    *(long *)context += p->@B;
    return p->@D;
}

NOINLINE static long visit@N(struct T@N *p, struct visit@N *how)
{
    if (!p)
        return 0;
    how->depth++;
    return how->each(p, how->context) + visit@N(p->right, how) + visit@N(p->left, how);
}

NOINLINE static struct T@N by_value@N(struct T@N *p, int k)
{
    struct T@N copy = *p;
    copy.@A = copy.@B;
    copy.text[k & 7] ^= 1;
    return copy;
}

NOINLINE static long locals@N(int k)
{
    struct T@N few[3];
    memset(few, 0, sizeof few);
    for (int i = 0; i < 3; i++)
        fill@N(&few[i], k + i);
    qsort(few, 3, sizeof few[0], order@N);
    return few[0].@A + few[k % 3].@D;
}

NOINLINE static void grow@N(int k)
{
    struct T@N *fresh = object("T@N", sizeof *fresh, 1);
    fresh->ints = buffer(10 * sizeof(int));
    fresh->next = head@N;
    fresh->other = root@O;
    fresh->node.next = &ring@N;
    fresh->node.prev = ring@N.prev;
    ring@N.prev->next = &fresh->node;
    ring@N.prev = &fresh->node;
    head@N = fresh;
    fresh->@C = k;
    fresh->@E = k + 2;
    strcpy(fresh->text, "grown");
}

NOINLINE static long vector@N(struct T@N *restrict to, const struct T@N *restrict from)
{
    for (int i = 0; i < 16; i++)
        to->text[i] = from->text[i] + 1;
    for (int i = 0; i < 10; i++)
        to->ints[i] += from->ints[i];
    return strlen(to->text) + memcmp(to->text, from->text, 4);
}

NOINLINE static long hostile@N(int k)
{
    long sum = 0;
    qsort(array@N, 6, sizeof array@N[0], order@N);
    drop@N(&head@N, k, k);
    sum += bytes@N(table@N[k & 7], sizeof *table@N[0]);
    sum += bytes@N(&many@N[k & 3], sizeof many@N[0]);
    for (int i = 0; i < 8; i++)
        sum += choose@N(table@N[i], (i + k) & 7, k);
    struct visit@N how = { add@N, &sum, 0 };
    sum += visit@N(root@N, &how);
    struct T@N copy = by_value@N(table@N[2], k);
    sum += copy.@B + how.depth;
    sum += locals@N(k);
    sum += vector@N(table@N[5], &array@N[1]);
    struct T@N *moved = memcpy(&many@N[0], &many@N[1], sizeof many@N[0]);
    sum += moved->@F;
    return sum;
}

/* Between the traced calls: objects die and others take their place. */
static void churn@N(int k)
{
    struct T@N *old = table@N[7];
    if (old != head@N) {
        return;
    }
    head@N = old->next;
    old->node.prev->next = old->node.next;
    old->node.next->prev = old->node.prev;
    release(old->ints);
    release(old);
    table@N[7] = head@N;
    table@N[3]->left = table@N[3]->right = 0;
    grow@N(k);
}

/* A common header, as interpreters have. */
struct head@N {
    struct head@N *link;
    unsigned char kind, mark;
};

struct small@N {
    struct head@N *link;
    unsigned char kind, mark;
    int length;
};

struct large@N {
    struct head@N *link;
    unsigned char kind, mark;
    struct T@N body;
    long last;
};

static struct head@N *all@N;

static void headers@N(void)
{
    for (int i = 0; i < 6; i++) {
        struct head@N *new;
        if (i & 1)
            new = object("large@N", sizeof(struct large@N), 1);
        else
            new = object("small@N", sizeof(struct small@N), 1);
        new->kind = i & 1;
        new->link = all@N;
        all@N = new;
    }
}

NOINLINE static long mark@N(int k)
{
    long sum = 0;
    for (struct head@N *at = all@N; at; at = at->link) {
        at->mark = k;
        if (at->kind) {
            struct large@N *large = (struct large@N *)at;
            sum += large->body.@A + large->last;
            large->body.@C = k;
        } else {
            struct small@N *small = (struct small@N *)at;
            sum += small->length++;
        }
    }
    return sum;
}
