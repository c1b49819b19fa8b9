/* As it was: one struct for hot and cold, two read-mostly variables apart from it. */
#include <convert.h>
#include <hrtimer.h>
#include <sched_clock.h>

/**
 * struct clock_data - the state of the clock
 * @wrap_kt:	how often the epoch has to be renewed, before the counter wraps
 * @epoch_ns:	the clock at the epoch, in ns
 * @epoch_cyc:	the counter at the epoch
 * @seq:	guards the epoch against readers that meet a writer
 * @rate:	the counter's rate, in Hz
 * @mult:	ticks to ns multiplier
 * @shift:	ticks to ns divisor, as a power of two
 * @suspended:	true while the clock stands still
 */
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

static struct hrtimer sched_clock_timer;
static int irqtime = -1;

static struct clock_data cd = {
	.mult = NSEC_PER_SEC / HZ,
};

static u64 __read_mostly sched_clock_mask;

/* The time until a counter is registered. */
static u64 jiffies;

static u64 jiffy_sched_clock_read(void)
{
	return jiffies;
}

static u64 (*read_sched_clock)(void) __read_mostly = jiffy_sched_clock_read;

unsigned long long sched_clock(void)
{
	u64 epoch_ns, epoch_cyc, cyc;
	unsigned int seq;

	if (cd.suspended)
		return cd.epoch_ns;
	do {
		seq = read_seqcount_begin(&cd.seq);
		epoch_cyc = cd.epoch_cyc;
		epoch_ns = cd.epoch_ns;
	} while (read_seqcount_retry(&cd.seq, seq));

	cyc = (read_sched_clock() - epoch_cyc) & sched_clock_mask;
	return epoch_ns + cyc_to_ns(cyc, cd.mult, cd.shift);
}

/* Moves the epoch to now, so that the difference from it stays small. */
static void update_sched_clock(void)
{
	u64 cyc = read_sched_clock();
	u64 ns = cd.epoch_ns +
		 cyc_to_ns((cyc - cd.epoch_cyc) & sched_clock_mask, cd.mult, cd.shift);

	write_seqcount_begin(&cd.seq);
	cd.epoch_ns = ns;
	cd.epoch_cyc = cyc;
	write_seqcount_end(&cd.seq);
}

static enum hrtimer_restart sched_clock_poll(struct hrtimer *timer)
{
	update_sched_clock();
	hrtimer_forward(timer, cd.wrap_kt);
	return HRTIMER_RESTART;
}

void sched_clock_register(u64 (*read)(void), int bits, unsigned long rate)
{
	u64 mask = counter_mask(bits), cyc, ns;
	u32 mult, shift;

	if (cd.rate > rate)
		return;
	calc_mult_shift(&mult, &shift, rate, 3600);
	cd.wrap_kt = (ktime_t)max_idle_ns(mult, shift, mask);

	cyc = read_sched_clock();
	ns = cd.epoch_ns + cyc_to_ns((cyc - cd.epoch_cyc) & sched_clock_mask, cd.mult, cd.shift);
	write_seqcount_begin(&cd.seq);
	read_sched_clock = read;
	sched_clock_mask = mask;
	cd.rate = rate;
	cd.mult = mult;
	cd.shift = shift;
	cd.epoch_cyc = read();
	cd.epoch_ns = ns;
	write_seqcount_end(&cd.seq);

	if (irqtime == -1)
		irqtime = rate >= 1000000;
}

void sched_clock_postinit(void)
{
	if (read_sched_clock == jiffy_sched_clock_read)
		sched_clock_register(jiffy_sched_clock_read, 64, HZ);
	update_sched_clock();
	sched_clock_timer.function = sched_clock_poll;
	hrtimer_start(&sched_clock_timer, cd.wrap_kt);
}

int sched_clock_suspend(void)
{
	update_sched_clock();
	cd.suspended = true;
	return 0;
}

void sched_clock_resume(void)
{
	cd.epoch_cyc = read_sched_clock();
	cd.suspended = false;
}
