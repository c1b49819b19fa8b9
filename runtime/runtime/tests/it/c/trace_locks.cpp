// Regions, marks and locks from C++ into ARGV[1]; bounded locks are given up when their region was assigned that arm.
#include <cerrno>
#include <cstdio>
#include <csignal>
#include <ctime>
#include <lineup/clock.h>
#include <lineup/trace.h>

LINEUP_REGION(work);
LINEUP_LOCK(gate);
LINEUP_LOCK(spinner);
LINEUP_MARK_NAME(round_number);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static int given_up;

static void one_round(int n)
{
	lineup::region guard(work);
	LINEUP_MARK(round_number, static_cast<uint64_t>(n));
	LINEUP_SPIN_LOCK(spinner, &spin);
	LINEUP_SPIN_UNLOCK(&spin);
	if (LINEUP_MUTEX_LOCK_BOUNDED(gate, &mutex) == ETIMEDOUT)
		given_up++;
	else
		LINEUP_MUTEX_UNLOCK(&mutex);
}

static void *hold(void *)
{
	pthread_mutex_lock(&mutex);
	timespec time = { 0, 50000000 };
	nanosleep(&time, nullptr);
	pthread_mutex_unlock(&mutex);
	return nullptr;
}

static void on_signal(int)
{
	LINEUP_BEGIN(work);
	LINEUP_END(work);
}

int main(int argc, char **argv)
{
	if (argc < 2 || lineup_clock_start() != 0)
		return 2;
	pthread_spin_init(&spin, 0);
	one_round(0);
	lineup_trace_config config = {};
	config.path = argv[1];
	LINEUP_TRY_GIVE_UP(work, 1000);
	if (lineup_trace_start(&config) != 0)
		return 3;
	one_round(1);
	for (int n = 2; n < 12; n++) {
		pthread_t holder;
		pthread_create(&holder, nullptr, hold, nullptr);
		timespec time = { 0, 10000000 };
		nanosleep(&time, nullptr);
		one_round(n);
		pthread_join(holder, nullptr);
	}
	std::signal(SIGUSR1, on_signal);
	std::raise(SIGUSR1);
	lineup_trace_stop();
	one_round(99);
	std::printf("%d\n", given_up);
	return 0;
}
