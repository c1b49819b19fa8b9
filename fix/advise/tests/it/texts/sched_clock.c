// The generic sched_clock before 2015, reduced to user space.
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t ktime_t;
typedef struct seqcount { unsigned sequence; } seqcount_t;

#define __read_mostly __attribute__((__section__(".data..read_mostly")))
#define notrace __attribute__((no_instrument_function))
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))

struct clock_data {
	ktime_t wrap_kt;
	u64 epoch_ns;
	u64 epoch_cyc;
	seqcount_t seq;
	unsigned long rate;
	u32 mult;
	u32 shift;
	bool suspended;
};

static int irqtime = -1;

static struct clock_data cd = {
	.mult	= 1000000000 / 250,
};

/* Which bits of the counter count. */
static u64 __read_mostly sched_clock_mask;

static u64 counter;

static u64 notrace jiffy_sched_clock_read(void)
{
	return counter;
}

static u64 __read_mostly (*read_sched_clock)(void) = jiffy_sched_clock_read;	/* the counter */

static inline u64 notrace cyc_to_ns(u64 cyc, u32 mult, u32 shift)
{
	return (cyc * mult) >> shift;
}

unsigned long long notrace sched_clock(void);
unsigned long long notrace sched_clock(void)
{
	u64 epoch_ns;
	u64 epoch_cyc;
	u64 cyc;
	unsigned seq;

	if (cd.suspended)
		return cd.epoch_ns;

	do {
		seq = READ_ONCE(cd.seq.sequence);
		epoch_cyc = cd.epoch_cyc;
		epoch_ns = cd.epoch_ns;
	} while (READ_ONCE(cd.seq.sequence) != seq);

	cyc = read_sched_clock();
	cyc = (cyc - epoch_cyc) & sched_clock_mask;
	return epoch_ns + cyc_to_ns(cyc, cd.mult, cd.shift);
}

void sched_clock_register(u64 (*read)(void), int bits, unsigned long rate);
void sched_clock_register(u64 (*read)(void), int bits, unsigned long rate)
{
	struct clock_data *p = &cd;

	sched_clock_mask = ~0ull >> (64 - bits);
	read_sched_clock = read;
	p->rate = rate;
	cd.wrap_kt = irqtime;
	counter++;
}
