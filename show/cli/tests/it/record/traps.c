#define _GNU_SOURCE
// What a program may do with SIGTRAP, signals, threads and processes, while traps stand in its code. Prints the same as
// without them.
#include "traps.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int wrong, trapped, told;
static volatile int in_handler;
static sigjmp_buf place;

static void check(const char *what, int is_right) {
    if (!is_right) { __sync_fetch_and_add(&wrong, 1); fprintf(stderr, "wrong: %s\n", what); }
}

static void calls(int times) {
    for (int x = 1; x <= times; x++)
        if (all(x)) { check("a sum", 0); break; }
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal; (void)context;
    trapped++;
    told = info->si_code;
    // SIGTRAP is blocked here.
    calls(3);
}

static void on_other(int signal, siginfo_t *info, void *context) {
    (void)signal; (void)info;
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    check("all is blocked in the handler", sigismember(&now, SIGTRAP) && sigismember(&now, SIGUSR2));
    check("it was not before", !sigismember(&((ucontext_t *)context)->uc_sigmask, SIGTRAP));
    calls(3);
    in_handler++;
}

static void on_jump(int signal) { (void)signal; calls(2); siglongjmp(place, 1); }

static void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {0};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, 0);
}

static void *thread(void *nothing) {
    sigset_t all_signals, before;
    for (int round = 0; round < 20; round++) {
        calls(10);
        sigfillset(&all_signals);
        pthread_sigmask(SIG_BLOCK, &all_signals, &before);
        calls(10);
        pthread_sigmask(SIG_SETMASK, &before, 0);
    }
    return nothing;
}

static int ended(void (*work)(void)) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) { work(); _exit(7); }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void child_calls(void) { calls(20); if (wrong) _exit(9); }
static void child_raises(void) { signal(SIGTRAP, SIG_DFL); calls(2); raise(SIGTRAP); }
static void child_traps(void) { signal(SIGTRAP, SIG_DFL); calls(2); __asm__ volatile("int3"); }
static void child_ignores(void) { signal(SIGTRAP, SIG_IGN); calls(2); raise(SIGTRAP); calls(2); }
static void child_traps_ignored(void) { signal(SIGTRAP, SIG_IGN); __asm__ volatile("int3"); }
static void child_traps_blocked(void) {
    sigset_t one; sigemptyset(&one); sigaddset(&one, SIGTRAP);
    sigprocmask(SIG_BLOCK, &one, 0);
    calls(2);
    __asm__ volatile("int3");
}
static void child_once(void) {
    set(SIGTRAP, on_trap, SA_RESETHAND);
    calls(5);
    raise(SIGTRAP);
    struct sigaction now;
    sigaction(SIGTRAP, 0, &now);
    if (now.sa_handler != SIG_DFL) _exit(8);
    calls(5);
    raise(SIGTRAP);
}
static void child_execs(void) { calls(2); execl("/bin/true", "true", (char *)0); }

static ucontext_t one_side, other_side;
static char stack[1 << 16];
static void coroutine(void) { for (int n = 0; n < 5; n++) { calls(2); swapcontext(&other_side, &one_side); } }

int main(void) {
    for (int x = 0; x < 16; x++) cells[x] = x * x;
    // Before any handler is set.
    calls(5);
    struct sigaction now;
    sigaction(SIGTRAP, 0, &now);
    check("nothing was set", now.sa_handler == SIG_DFL && now.sa_flags == 0);
    set(SIGTRAP, on_trap, 0);
    sigaction(SIGTRAP, 0, &now);
    check("it was set", now.sa_sigaction == on_trap && (now.sa_flags & SA_SIGINFO) && !(now.sa_flags & SA_ONSTACK));
    calls(5);
    raise(SIGTRAP);
    check("it was raised", trapped == 1 && told == SI_TKILL);
    __asm__ volatile("int3");
    check("the program's own trap", trapped == 2 && told == SI_KERNEL);
    // Blocked: it waits.
    sigset_t one, before, seen;
    sigemptyset(&one);
    sigaddset(&one, SIGTRAP);
    sigprocmask(SIG_BLOCK, &one, &before);
    check("not blocked before", !sigismember(&before, SIGTRAP));
    calls(5);
    raise(SIGTRAP);
    calls(5);
    check("it waits", trapped == 2);
    sigprocmask(SIG_BLOCK, 0, &seen);
    check("blocked now", sigismember(&seen, SIGTRAP));
    sigprocmask(SIG_UNBLOCK, &one, &seen);
    check("it came", trapped == 3 && sigismember(&seen, SIGTRAP));
    // By a system call that is no function of its own.
    unsigned long bits = 1ul << (SIGTRAP - 1), old = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &bits, &old, 8);
    calls(5);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, &bits, 8);
    check("by number", bits == 1ul << (SIGTRAP - 1) && old == 0 && getppid() == syscall(SYS_getppid));
    check("a bad place", syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, 0, 8) == -1 && sigprocmask(99, &one, 0) == -1);
    // Handlers in which all is blocked, and that are left by a jump.
    set(SIGUSR1, on_other, 0);
    for (int n = 0; n < 5; n++) raise(SIGUSR1);
    check("handled", in_handler == 5);
    signal(SIGUSR2, on_jump);
    for (int n = 0; n < 5; n++) if (!sigsetjmp(place, 1)) raise(SIGUSR2);
    calls(5);
    getcontext(&other_side);
    other_side.uc_stack.ss_sp = stack;
    other_side.uc_stack.ss_size = sizeof stack;
    other_side.uc_link = &one_side;
    makecontext(&other_side, coroutine, 0);
    for (int n = 0; n < 6; n++) swapcontext(&one_side, &other_side);
    pthread_t threads[4];
    for (int n = 0; n < 4; n++) pthread_create(&threads[n], 0, thread, 0);
    for (int n = 0; n < 4; n++) pthread_join(threads[n], 0);
    check("a shell", system("exit 3") == 3 << 8);
    calls(5);
    printf("children %d %d %d %d %d %d %d %d\n", ended(child_calls), ended(child_raises), ended(child_traps),
        ended(child_ignores), ended(child_traps_ignored), ended(child_traps_blocked), ended(child_once), ended(child_execs));
    check("not changed by children", trapped == 3);
    calls(5);
    raise(SIGTRAP);
    printf("wrong %x\ntrapped %x\n", wrong, trapped);
    return 0;
}
