/* Two threads record numbered marks into ARGV[1] until killed; prints "ready" once both have begun. */
#include <lineup/trace.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

LINEUP_REGION(turn);
LINEUP_MARK_NAME(number);

static atomic_int begun;

static void *record(void *unused)
{
	(void)unused;
	for (uint64_t n = 0;; n += 2) {
		LINEUP_MARK(number, n);
		LINEUP_BEGIN(turn);
		LINEUP_END(turn);
		if (n == 100)
			atomic_fetch_add(&begun, 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	struct lineup_trace_config config = { .path = argv[1], .ring_records = 1024, .threads = 4 };
	int failed = lineup_trace_start(&config);
	if (failed)
		return failed;
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, record, NULL);
	while (atomic_load(&begun) < 2)
		usleep(100);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
