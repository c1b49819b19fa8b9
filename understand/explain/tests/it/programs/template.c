
static struct T@N *head@N, *root@N, *array@N, *table@N[8];
static struct link ring@N;
struct T@N single@N, many@N[4];
static __thread struct T@N own@N;
static __thread struct T@N *chosen@N;
__thread long ticks@N[4] = { 1, 2, 3, 4 };

static void make@N(void)
{
    array@N = object("T@N", sizeof(struct T@N), 6);
    for (int i = 0; i < 6; i++)
        array@N[i].ints = buffer(10 * sizeof(int));
    ring@N.next = ring@N.prev = &ring@N;
    for (int i = 0; i < 8; i++) {
        struct T@N *p = object("T@N", sizeof *p, 1);
        p->next = head@N;
        p->ints = buffer(10 * sizeof(int));
        head@N = p;
        table@N[i] = p;
        p->node.next = &ring@N;
        p->node.prev = ring@N.prev;
        ring@N.prev->next = &p->node;
        ring@N.prev = &p->node;
        if (i)
            *(i & 1 ? &table@N[(i - 1) / 2]->left : &table@N[(i - 1) / 2]->right) = p;
    }
    root@N = table@N[0];
    single@N.ints = buffer(10 * sizeof(int));
    printf("object T@N %p %zu\n", (void *)&single@N, sizeof single@N);
    for (int i = 0; i < 4; i++)
        printf("object T@N %p %zu\n", (void *)&many@N[i], sizeof many@N[i]);
    printf("object link %p %zu\n", (void *)&ring@N, sizeof ring@N);
    printf("object T@N %p %zu\n", (void *)&own@N, sizeof own@N);
    printf("thread own@N %p %zu\n", (void *)&own@N, sizeof own@N);
    printf("thread chosen@N %p %zu\n", (void *)&chosen@N, sizeof chosen@N);
    printf("thread ticks@N %p %zu\n", (void *)ticks@N, sizeof ticks@N);
}

NOINLINE static long walk@N(struct T@N *p, int k)
{
    long sum = 0;
    for (; p; p = p->next) {
        sum += p->@A;
        p->@B = sum;
        if (sum & 1)
            p->@C += k;
    }
    return sum;
}

NOINLINE static long sweep@N(struct T@N *a, int n, int k)
{
    long sum = 0;
    for (int i = 0; i < n; i++) {
        a[i].@D += k;
        sum += a[i].@E;
    }
    return sum;
}

NOINLINE static void between@N(struct T@N *from, struct T@N *to, int k)
{
    for (; from < to; from++)
        from->@F = k;
}

NOINLINE static struct T@N *find@N(struct T@N *p, long key, int k)
{
    while (p && p->@G != key)
        p = p->next;
    return p ? p : head@N;
}

NOINLINE static long tree@N(struct T@N *p, int k)
{
    if (!p)
        return 0;
    return tree@N(p->left, k) + p->@H + tree@N(p->right, k);
}

static inline long node_sum@N(struct link *list, int k)
{
    long sum = 0;
    for (struct link *at = list->next; at != list; at = at->next) {
        struct T@N *p = container_of(at, struct T@N, node);
        sum += p->@C + k;
        p->@E += 1 + (long)p->@A;
    }
    return sum;
}

NOINLINE static long indirect@N(int k)
{
    long sum = 0;
    for (int i = 0; i < 8; i++) {
        struct T@N *p = table@N[(i * 3) & 7];
        sum += p->@B;
        if (p->other)
            sum += (long)p->other->text[k];
        p->text[i] = (char)sum;
        for (int j = 0; j < 10; j++)
            p->ints[j] += j + k;
    }
    return sum;
}

NOINLINE static void fill@N(struct T@N *p, int k)
{
    p->@A = k;
    p->@D = k + 1;
    p->text[k & 15] = 1;
}

NOINLINE static long local@N(int k)
{
    struct T@N here;
    memset(&here, 0, sizeof here);
    fill@N(&here, k);
    return here.@A + here.@D + here.text[1];
}

NOINLINE static void copy@N(struct T@N *to, const struct T@N *from)
{
    struct T@N *next = to->next, *left = to->left, *right = to->right, *other = to->other;
    struct link node = to->node;
    int *ints = to->ints;
    *to = *from;
    to->next = next;
    to->left = left;
    to->right = right;
    to->other = other;
    to->node = node;
    to->ints = ints;
}

NOINLINE static long per_thread@N(int k)
{
    long sum = ++ticks@N[k & 3];
    own@N.@A += k;
    sum += own@N.@B;
    if (chosen@N)
        sum += chosen@N->@C;
    chosen@N = k & 1 ? &own@N : head@N;
    fill@N(&own@N, k);
    return sum;
}

NOINLINE static long run@N(int k)
{
    long sum = walk@N(head@N, k);
    sum += sweep@N(array@N, 6, k);
    between@N(array@N + 1, array@N + 5, k);
    struct T@N *p = find@N(head@N, sum, k);
    p->@H += 1;
    sum += tree@N(root@N, k);
    sum += node_sum@N(&ring@N, k);
    sum += indirect@N(k);
    sum += local@N(k);
    sum += per_thread@N(k);
    copy@N(table@N[3], table@N[k & 7]);
    table@N[k & 7]->other = root@O;
    single@N.@B += k;
    many@N[k & 3].@C = sum;
    for (int i = 0; i < 4; i++)
        many@N[i].@G += single@N.@F;
    fill@N(&single@N, k);
    memset(array@N[5].text, k, sizeof array@N[5].text);
    return sum;
}
