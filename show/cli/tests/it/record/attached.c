// Threads that serve requests and threads that make them, one that sleeps, one that only computes, and signals that
// are queued: it counts whatever gets lost or is wrong.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static atomic_long answered, wrong, interrupted, queued, handled, early, sums;
static volatile int over;
static volatile long table[1024];
__attribute__((noinline)) long work(long x) {
    long sum = 0;
    for (int i = 0; i < 20; i++) { table[(x + i) & 1023] = i; sum += (x * 7 + i) & 1023; }
    char *block = malloc(40 + (x & 63));
    block[3] = (char)sum;
    sum += block[3];
    free(block);
    return sum;
}
static long expected(long x) { long sum = 0; for (int i = 0; i < 20; i++) sum += (x * 7 + i) & 1023; return sum + (char)sum; }
__attribute__((noinline)) long spin(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += table[(sum + i) & 1023]; return sum; }
static void on_queued(int signal, siginfo_t *info, void *context) { handled += info->si_value.sival_int; }
static void *serve(void *socket) {
    int own = (long)socket, poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, got;
    epoll_ctl(poll, EPOLL_CTL_ADD, own, &event);
    for (;;) {
        if (epoll_wait(poll, &got, 1, -1) != 1) { interrupted++; continue; }
        long x;
        if (read(own, &x, 8) != 8) return 0;
        x = work(x);
        if (write(own, &x, 8) != 8) return 0;
    }
}
static void *ask(void *socket) {
    int own = (long)socket;
    for (long i = 1; !over; i++) {
        long x = i, answer = 0;
        if (write(own, &x, 8) != 8 || read(own, &answer, 8) != 8) interrupted++;
        if (answer != expected(i)) wrong++;
        answered++;
        if (i % 64 == 0) usleep(50);
    }
    close(own);
    return 0;
}
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
static void *sleeps(void *unused) {
    while (!over) {
        struct timespec time = {0, 30000000};
        long begun = now();
        if (nanosleep(&time, 0) != 0) interrupted++;
        if (now() - begun < 30000000) early++;
    }
    return 0;
}
static void *computes(void *unused) { while (!over) sums += spin(200) & 1; return 0; }
int main(void) {
    struct sigaction action = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &action, 0);
    pthread_t threads[8];
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &own, 0);
    for (long i = 0; i < 3; i++) {
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        pthread_create(&threads[2 * i], 0, serve, (void *)(long)pair[0]);
        pthread_create(&threads[2 * i + 1], 0, ask, (void *)(long)pair[1]);
    }
    pthread_create(&threads[6], 0, sleeps, 0);
    pthread_sigmask(SIG_UNBLOCK, &own, 0);
    pthread_create(&threads[7], 0, computes, 0);
    // Told to end by a line on its standard input.
    for (char line[8]; !over;) {
        fd_set in;
        FD_ZERO(&in);
        FD_SET(0, &in);
        struct timeval time = {0, 2000};
        if (select(1, &in, 0, 0, &time) == 1) over = read(0, line, 8) >= 0;
        union sigval value = {.sival_int = 1};
        // Once it is told to end, the thread may be gone before it handles another.
        if (!over && pthread_sigqueue(threads[7], SIGRTMIN, value) == 0) queued++;
    }
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    printf("answered %ld\nwrong %ld\ninterrupted %ld\nearly %ld\nlost signals %ld\n", answered, wrong, interrupted, early, queued - handled);
}
