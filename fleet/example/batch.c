/* Looks for tasks that are late. */
#include "task.h"
#include <stdio.h>

__attribute__((noinline)) int is_late(const struct task *task)
{
	return task->state != 0 && task->deadline < 6000;
}

int main(void)
{
	const struct task *tasks = make_tasks();
	long late = 0;
	for (int round = 0; round < ROUNDS; round++)
		for (int at = 0; at < TASKS; at++)
			late += is_late(&tasks[at]);
	printf("late %ld\n", late);
}
