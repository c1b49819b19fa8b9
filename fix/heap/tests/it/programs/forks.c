/* Forks again and again while threads allocate; each child frees its parent's objects, makes its own, and forks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int is_over;
static _Atomic(char *) shared[64];

static void *work(void *argument) {
    unsigned state = (unsigned)(size_t)argument;
    while (!is_over) {
        state = state * 1103515245 + 12345;
        char *object = malloc(8 + state % 300);
        memset(object, 1, 8);
        free(atomic_exchange(&shared[state / 65536 % 64], object));
    }
    return NULL;
}

static void *alone(void *argument) {
    for (int i = 0; i < 3000; i++) free(malloc(50));
    free(argument);
    return NULL;
}

static int child(int depth) {
    for (int i = 0; i < 64; i++) free(atomic_exchange(&shared[i], NULL));
    char *all[500];
    for (int i = 0; i < 500; i++) { all[i] = malloc(10 + i); memset(all[i], i, 10 + i); }
    for (int i = 0; i < 500; i++) for (int j = 0; j < 10 + i; j++) if (all[i][j] != (char)i) return 3;
    pthread_t thread;
    pthread_create(&thread, NULL, alone, all[0]);
    pthread_join(thread, NULL);
    for (int i = 1; i < 500; i++) free(all[i]);
    if (depth) {
        pid_t process = fork();
        if (!process) _exit(child(depth - 1));
        int status;
        waitpid(process, &status, 0);
        return status ? 4 : 0;
    }
    return 0;
}

int main(void) {
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 200; i++) {
        pid_t process = fork();
        if (!process) { alarm(20); _exit(child(i % 3)); }
        int status;
        waitpid(process, &status, 0);
        if (status) { printf("child %d: %x\n", i, status); return 1; }
    }
    is_over = 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 64; i++) free(shared[i]);
    puts("all children ended well");
    return 0;
}
