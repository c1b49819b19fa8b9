/* Serves its immediate values, traces 1000 turns into ARGV[1], waits for its input to close, prints its value. */
#include <lineup/trace.h>
#include <stdio.h>

DEFINE_IMV(int, threshold) = -5;
LINEUP_REGION(turn);
LINEUP_MARK_NAME(step);
static long table[512];

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	LINEUP_TRY_DATA(turn, table, sizeof table);
	struct lineup_trace_config config = { .path = argv[1], .modes = LINEUP_EVENTS | LINEUP_HIGH_WATER, .threads = 2 };
	if (lineup_imv_serve() != 0 || lineup_trace_start(&config) != 0)
		return 3;
	for (int n = 0; n < 1000; n++) {
		LINEUP_BEGIN(turn);
		LINEUP_MARK(step, (uint64_t)n);
		for (int i = 0; i < 512; i++)
			table[i] += imv_read(threshold);
		LINEUP_END(turn);
	}
	lineup_trace_stop();
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	printf("threshold %d\n", imv_read(threshold));
	return 0;
}
