#include "task.h"
#include <stdlib.h>

struct task *make_tasks(void)
{
	struct task *tasks = aligned_alloc(64, TASKS * sizeof *tasks);
	if (!tasks)
		abort();
	for (long at = 0; at < TASKS; at++) {
		tasks[at].id = at;
		tasks[at].state = at % 7;
		tasks[at].deadline = at * 3;
	}
	return tasks;
}
