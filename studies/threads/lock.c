/* An account whose lock lies beside a number that is asked for without it: one thread pays in, the other counts questions and
 * pays in seldom. The lock belongs to the balance that it guards, and away from what is asked.
 *
 *     lineup study --region serve --allow-growth --build "make lock" -- ./lock
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 20000

struct account {
    pthread_mutex_t lock;
    atomic_long asked;
    long balance;
};

static struct account account __attribute__((aligned(64))) = { .lock = PTHREAD_MUTEX_INITIALIZER };
static pthread_barrier_t together;
static long calls = 40;

static void pay(struct account *to, long sum) {
    pthread_mutex_lock(&to->lock);
    to->balance += sum;
    pthread_mutex_unlock(&to->lock);
}

__attribute__((noinline)) void serve(struct account *of, long own) {
    for (long i = 0; i < ROUNDS; i++) {
        if (own == 0 || i % 64 == 0)
            pay(of, 1);
        else
            atomic_fetch_add(&of->asked, 1);
    }
}

static void *run(void *own) {
    for (long call = 0; call < calls; call++) {
        pthread_barrier_wait(&together);
        serve(&account, (long)own);
    }
    return 0;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    if (count > 1) calls = atol(arguments[1]);
    pthread_barrier_init(&together, 0, 2);
    for (long own = 0; own < 2; own++) pthread_create(&threads[own], 0, run, (void *)own);
    for (int own = 0; own < 2; own++) pthread_join(threads[own], 0);
    printf("%ld asked, %ld paid\n", (long)account.asked, account.balance);
    return 0;
}
