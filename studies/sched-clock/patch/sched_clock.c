/* As the 2015 patch left it: what a read needs in one struct, at the start of one aligned line. */
#include <convert.h>
#include <hrtimer.h>
#include <sched_clock.h>

/**
 * struct clock_read_data - what reading the clock needs
 * @epoch_ns:	the clock at the epoch, in ns
 * @epoch_cyc:	the counter at the epoch
 * @sched_clock_mask: the bits that the counter has
 * @read_sched_clock: reads the counter
 * @mult:	ticks to ns multiplier
 * @shift:	ticks to ns divisor, as a power of two
 * @suspended:	true while the clock stands still
 */
struct clock_read_data {
	u64 epoch_ns;
	u64 epoch_cyc;
	u64 sched_clock_mask;
	u64 (*read_sched_clock)(void);
	u32 mult;
	u32 shift;
	bool suspended;
};

/**
 * struct clock_data - the state of the clock
 * @seq:	guards the epoch against readers that meet a writer
 * @read_data:	what a read needs
 * @wrap_kt:	how often the epoch has to be renewed, before the counter wraps
 * @rate:	the counter's rate, in Hz
 */
struct clock_data {
	seqcount_t seq;
	struct clock_read_data read_data;
	ktime_t wrap_kt;
	unsigned long rate;
};

static struct hrtimer sched_clock_timer;
static int irqtime = -1;

/* The time until a counter is registered. */
static u64 jiffies;

static u64 jiffy_sched_clock_read(void)
{
	return jiffies;
}

static struct clock_data cd ____cacheline_aligned = {
	.read_data = {
		.mult = NSEC_PER_SEC / HZ,
		.read_sched_clock = jiffy_sched_clock_read,
	},
};

unsigned long long sched_clock(void)
{
	u64 epoch_ns, epoch_cyc, cyc;
	unsigned int seq;

	if (cd.read_data.suspended)
		return cd.read_data.epoch_ns;
	do {
		seq = read_seqcount_begin(&cd.seq);
		epoch_cyc = cd.read_data.epoch_cyc;
		epoch_ns = cd.read_data.epoch_ns;
	} while (read_seqcount_retry(&cd.seq, seq));

	cyc = (cd.read_data.read_sched_clock() - epoch_cyc) & cd.read_data.sched_clock_mask;
	return epoch_ns + cyc_to_ns(cyc, cd.read_data.mult, cd.read_data.shift);
}

/* Moves the epoch to now, so that the difference from it stays small. */
static void update_sched_clock(void)
{
	struct clock_read_data *rd = &cd.read_data;
	u64 cyc = rd->read_sched_clock();
	u64 ns = rd->epoch_ns +
		 cyc_to_ns((cyc - rd->epoch_cyc) & rd->sched_clock_mask, rd->mult, rd->shift);

	write_seqcount_begin(&cd.seq);
	rd->epoch_ns = ns;
	rd->epoch_cyc = cyc;
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
	struct clock_read_data *rd = &cd.read_data;
	u64 mask = counter_mask(bits), cyc, ns;
	u32 mult, shift;

	if (cd.rate > rate)
		return;
	calc_mult_shift(&mult, &shift, rate, 3600);
	cd.wrap_kt = (ktime_t)max_idle_ns(mult, shift, mask);

	cyc = rd->read_sched_clock();
	ns = rd->epoch_ns + cyc_to_ns((cyc - rd->epoch_cyc) & rd->sched_clock_mask, rd->mult, rd->shift);
	write_seqcount_begin(&cd.seq);
	rd->read_sched_clock = read;
	rd->sched_clock_mask = mask;
	cd.rate = rate;
	rd->mult = mult;
	rd->shift = shift;
	rd->epoch_cyc = read();
	rd->epoch_ns = ns;
	write_seqcount_end(&cd.seq);

	if (irqtime == -1)
		irqtime = rate >= 1000000;
}

void sched_clock_postinit(void)
{
	if (cd.read_data.read_sched_clock == jiffy_sched_clock_read)
		sched_clock_register(jiffy_sched_clock_read, 64, HZ);
	update_sched_clock();
	sched_clock_timer.function = sched_clock_poll;
	hrtimer_start(&sched_clock_timer, cd.wrap_kt);
}

int sched_clock_suspend(void)
{
	update_sched_clock();
	cd.read_data.suspended = true;
	return 0;
}

void sched_clock_resume(void)
{
	cd.read_data.epoch_cyc = cd.read_data.read_sched_clock();
	cd.read_data.suspended = false;
}
