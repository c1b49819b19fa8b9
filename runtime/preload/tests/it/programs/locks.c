/* An unmodified program: two threads take turns at a mutex with a condition, then one spins. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static int turn;

static void *other(void *unused)
{
	(void)unused;
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != 1)
			pthread_cond_wait(&condition, &mutex);
		turn = 0;
		pthread_cond_signal(&condition);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	pthread_spin_init(&spin, 0);
	pthread_create(&thread, NULL, other, NULL);
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != 0)
			pthread_cond_wait(&condition, &mutex);
		turn = 1;
		pthread_cond_signal(&condition);
		pthread_mutex_unlock(&mutex);
		pthread_spin_lock(&spin);
		pthread_spin_unlock(&spin);
	}
	pthread_join(thread, NULL);
	pthread_mutex_lock(&mutex);
	usleep(20000);
	pthread_mutex_unlock(&mutex);
	if (pthread_mutex_trylock(&mutex) == 0)
		pthread_mutex_unlock(&mutex);
	printf("%p\n", (void *)&mutex);
	return 0;
}
