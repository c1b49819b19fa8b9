/* A kernel for two processors with data that share a line and data that do not. */
#define TURNS 3000

/* Planted: each processor has an element of its own, and both lie on one line. */
static volatile unsigned long counts[2] __attribute__((aligned(64), unused));

/* The same, each on a line of its own. */
static struct apart { volatile unsigned long count; char room[56]; } apart[2] __attribute__((aligned(64), unused));

/* A lock as Linux has it: taken by compare-and-exchange, given back by a store of one byte. */
struct qspinlock { unsigned int value; };
typedef struct raw_spinlock { struct qspinlock raw_lock; } raw_spinlock_t;
static struct account {
    raw_spinlock_t lock;
    volatile unsigned long balance;
    char room[128];
    volatile unsigned long history;
} account __attribute__((aligned(64), unused));

static volatile unsigned int there[2];
static int places[64];
/* How far each processor is, 256 bytes apart. */
static volatile int done[2][64] __attribute__((aligned(256)));

void marker(void);
void begin(long own);
void _raw_spin_lock(raw_spinlock_t *lock);
void work(long own);

static void out(unsigned short port, unsigned int value)
{
    __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static void pause(void) { __asm__ volatile("pause" : : : "memory"); }

/* Where the recorder begins and ends. */
__attribute__((noinline)) void marker(void) { __asm__ volatile("" : : : "memory"); }

__attribute__((noinline)) void _raw_spin_lock(raw_spinlock_t *lock)
{
    for (;;) {
        unsigned int is_free = 0;
        if (__atomic_compare_exchange_n(&lock->raw_lock.value, &is_free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        while (__atomic_load_n(&lock->raw_lock.value, __ATOMIC_RELAXED)) pause();
    }
}

__attribute__((unused)) static inline void give_back(raw_spinlock_t *lock)
{
    __atomic_store_n((unsigned char *)&lock->raw_lock.value, 0, __ATOMIC_RELEASE);
}

/* Neither processor gets far ahead of the other, whatever the host gives them. Waiting makes few accesses. */
static void keep_pace(long own, int turn)
{
    done[own][0] = turn;
    while (done[1 - own][0] + 8 < turn)
        for (int wait = 0; wait < 1000; wait++) pause();
}

__attribute__((noinline)) void work(long own)
{
    for (int turn = 0; turn < TURNS; turn++) {
#if TOGETHER
        counts[own]++;
#elif APART
        apart[own].count++;
#else
        _raw_spin_lock(&account.lock);
        account.balance++;
        account.history++;
        give_back(&account.lock);
#endif
        if (turn % 8 == 0) keep_pace(own, turn);
    }
    done[own][0] = TURNS;
}

static void meet(int place)
{
    __atomic_fetch_add(&places[place], 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&places[place], __ATOMIC_SEQ_CST) < 2) pause();
}

/* Has the interrupt controller start the other processor at 0x8000. */
static void start_other(void)
{
    volatile unsigned int *controller = (volatile unsigned int *)0xfee00000ul;
    controller[0xf0 / 4] = 0x1ff;
    controller[0x310 / 4] = 1 << 24;
    controller[0x300 / 4] = 0x4500;
    for (int turn = 0; turn < 100000; turn++) pause();
    controller[0x310 / 4] = 1 << 24;
    controller[0x300 / 4] = 0x4608;
}

void begin(long own)
{
    there[own] = 1;
    if (own == 0) {
        start_other();
        while (!there[1]) pause();
        marker();
    }
    meet(0);
    /* The recorder begins soon after the marker, on each processor as soon as the host lets it run. */
    for (int turn = 0; turn < 200000; turn++) pause();
    meet(32);
    work(own);
    meet(16);
    if (own) for (;;) __asm__ volatile("hlt");
    marker();
    out(0xf4, 0);
    for (;;) __asm__ volatile("hlt");
}
