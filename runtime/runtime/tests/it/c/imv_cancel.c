/*
 * Threads are cancelled while they set values, start and stop the tracer, and record with counters that are read by a
 * call. Each ends as cancelled threads end, and nothing that it held stays held. ARGV[1]: a trace file.
 */
#include <lineup/trace.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

DEFINE_IMV(int, level) = 1;
LINEUP_REGION(work);

static const char *path;

static void *keep_setting(void *unused)
{
	(void)unused;
	for (int i = 0;; i++) {
		imv_set(level, i);
		pthread_testcancel();
	}
	return NULL;
}

static void *keep_tracing(void *unused)
{
	struct lineup_trace_config config = { .path = path, .counters = 2, .threads = 4, .ring_records = 64 };
	for (;;) {
		lineup_trace_start(&config);
		for (int i = 0; i < 4; i++) {
			LINEUP_BEGIN(work);
			LINEUP_END(work);
		}
		lineup_trace_stop();
		pthread_testcancel();
	}
	return unused;
}

static int cancelled(void *(*body)(void *), int round)
{
	pthread_t thread;
	void *result;
	if (pthread_create(&thread, NULL, body, NULL) != 0)
		return 0;
	usleep(13 * (unsigned int)round);
	pthread_cancel(thread);
	return pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	path = argv[1];
	for (int round = 0; round < 100; round++) {
		if (!cancelled(keep_setting, round) || imv_set(level, round) != 0 || imv_read(level) != round) {
			fprintf(stderr, "round %d: setting\n", round);
			return 1;
		}
	}
	for (int round = 0; round < 40; round++) {
		struct lineup_trace_config config = { .path = path, .threads = 4, .ring_records = 64 };
		if (!cancelled(keep_tracing, 20 * round)) {
			fprintf(stderr, "round %d: tracing\n", round);
			return 1;
		}
		lineup_trace_stop();
		if (lineup_trace_start(&config) != 0) {
			fprintf(stderr, "round %d: the tracer does not start again\n", round);
			return 1;
		}
		lineup_trace_stop();
	}
	printf("ok\n");
	return 0;
}
