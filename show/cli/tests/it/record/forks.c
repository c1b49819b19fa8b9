/* Processes that come to be in all the ways there are. Each store of `work`, `killed` and `orphan` is foretold: see forked.rs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile long cells[64];
__attribute__((noinline)) void work(long n) { for (long i = 0; i < n; i++) cells[i & 63] += i; }
__attribute__((noinline)) void killed(long n) { for (long i = 0; i < n; i++) cells[i & 7] ^= i; }
__attribute__((noinline)) void orphan(long n) { for (long i = 0; i < n; i++) cells[i & 7] -= i; }
static long stack[1 << 13] __attribute__((aligned(64)));
static char handlers_stack[1 << 16];
static int on_stack(void *argument) { work((long)argument); _exit(3); }
static void wait_for(pid_t child, int wanted) {
    int status;
    if (waitpid(child, &status, 0) != child) abort();
    if ((WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)) != wanted) abort();
}
static void *many(void *argument) {
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) { work(100); _exit(3); }
        work(10);
        wait_for(child, 3);
    }
    return argument;
}
static void *within(void *argument) { work(300); return argument; }
static void forks(int signal) {
    pid_t child = fork();
    if (child == 0) { work(50); if (signal == SIGUSR1) _exit(3); return; }
    wait_for(child, 3);
}
static void tree(int depth) {
    work(20);
    for (int i = 0; depth > 0 && i < 2; i++) {
        pid_t child = fork();
        if (child == 0) { tree(depth - 1); _exit(3); }
        wait_for(child, 3);
    }
}
static void by_the_library(char *own) {
    char line[256], text[64], *arguments[] = {own, "2000", 0};
    pid_t child;
    snprintf(line, sizeof line, "%s 1000", own);
    if (system(line)) abort();
    FILE *in = popen("echo hello; true", "r");
    if (!fgets(text, sizeof text, in) || pclose(in)) abort();
    if (posix_spawn(&child, own, 0, 0, arguments, environ)) abort();
    wait_for(child, 0);
    if ((child = vfork()) == 0) { execv(own, arguments); _exit(9); }
    wait_for(child, 0);
    if ((child = vfork()) == 0) _exit(3);
    wait_for(child, 3);
    if ((child = fork()) == 0) { work(7); execv(own, arguments); _exit(9); }
    wait_for(child, 0);
    if ((child = fork()) == 0) { execv("/nowhere", arguments); work(11); _exit(3); }
    wait_for(child, 3);
}
static void by_system_calls(void) {
    unsigned long words[11] = {[4] = SIGCHLD};
    pid_t child = clone(on_stack, (char *)(stack + (1 << 13) - 16), SIGCHLD, (void *)500L);
    wait_for(child, 3);
    if ((child = syscall(SYS_clone3, words, sizeof words)) == 0) { work(600); _exit(3); }
    wait_for(child, 3);
    if ((child = syscall(SYS_fork)) == 0) { work(700); _exit(3); }
    wait_for(child, 3);
    /* The one way that is not counted. */
    if ((child = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)) == 0) { work(1); _exit(3); }
    wait_for(child, 3);
}
int main(int count, char **words) {
    pthread_t threads[4];
    pid_t child;
    int ends[2];
    char byte;
    if (count > 1) { work(atoi(words[1])); return 0; }
    tree(3);
    by_the_library(words[0]);
    by_system_calls();
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, many, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    if ((child = fork()) == 0) {
        pthread_create(threads, 0, within, 0);
        pthread_join(threads[0], 0);
#ifndef ALONE
        work(dlsym(dlopen("libm.so.6", RTLD_NOW), "feclearexcept") ? 900 : 0);
#else
        work(900);
#endif
        _exit(3);
    }
    wait_for(child, 3);
    struct sigaction action = {.sa_handler = forks};
    stack_t alternate = {.ss_sp = handlers_stack, .ss_size = sizeof handlers_stack};
    sigaltstack(&alternate, 0);
    sigaction(SIGUSR1, &action, 0);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, 0);
    for (int i = 0; i < 3; i++) { raise(SIGUSR1); work(5); }
    /* The handler's child comes back from it, too. */
    pid_t own = getpid();
    raise(SIGUSR2);
    work(40);
    if (getpid() != own) _exit(3);
    if (pipe(ends)) abort();
    if ((child = fork()) == 0) { killed(12345); if (write(ends[1], "x", 1)) for (;;) pause(); }
    if (read(ends[0], &byte, 1) != 1) abort();
    kill(child, SIGKILL);
    wait_for(child, -SIGKILL);
    if ((child = fork()) == 0) { killed(54321); *(volatile int *)8 = 1; }
    wait_for(child, -SIGSEGV);
    if ((child = fork()) == 0) {
        pid_t parent = getpid();
        if (fork() == 0) { while (getppid() == parent) sched_yield(); orphan(4321); _exit(0); }
        _exit(3);
    }
    wait_for(child, 3);
    puts("done");
    return 0;
}
