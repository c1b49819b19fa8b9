/* A task as two services have it, each of which uses two of its members. */
#ifndef TASK_H
#define TASK_H

struct task {
	long id;
	char name[56];
	long state;
	char owner[56];
	long deadline;
	char reason[56];
};

enum { TASKS = 4096, ROUNDS = 50 };

struct task *make_tasks(void);

#endif
