/* A kernel for one processor with what is known by registers alone where calls begin: an object that lies in no variable and
   that code without debug information writes, and what the processor has a copy of. */
struct report { unsigned long number; char text[40]; struct report *next; };
struct tally { unsigned long count, sum; };

static struct tally tally __attribute__((section(".data..percpu"), used));

/* Where nothing else lies. */
#define REPORT ((struct report *)0x2000000)
#define COPY ((struct tally *)0x2100000)

void marker(void);
void begin(long own);
void fill(struct report *report);
void add(unsigned long value, struct tally *copy);
void clear_ends(void *object, unsigned long bytes);

/* Where the recorder begins and ends. */
__attribute__((noinline)) void marker(void) { __asm__ volatile("" : : : "memory"); }

__attribute__((noinline)) void fill(struct report *report) { clear_ends(report, sizeof *report); }

__attribute__((noinline)) void add(unsigned long value, struct tally *copy) { copy->sum += value; }

/* How far this processor's copies lie from the section: where Linux has it. */
static void set_copies(unsigned long distance)
{
    __asm__ volatile("wrmsr" : : "c"(0xc0000101), "a"((unsigned int)distance), "d"((unsigned int)(distance >> 32)));
}

void begin(long own)
{
    set_copies((unsigned long)COPY - (unsigned long)&tally);
    marker();
    /* The recorder begins soon after. */
    for (int turn = 0; turn < 200000; turn++) __asm__ volatile("pause" : : : "memory");
    for (int turn = 0; turn < 10; turn++) {
        fill(REPORT);
        add(turn, COPY);
    }
    marker();
    __asm__ volatile("outl %0, %1" : : "a"((unsigned int)own), "Nd"((unsigned short)0xf4));
    for (;;) __asm__ volatile("hlt");
}
