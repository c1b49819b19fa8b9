/* Hands the bytes of a struct to the kernel in the way that its argument names. Built with -DSWAPPED, the
   struct's members lie in the other order: the program then does something else, though it compiles. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct sample {
#ifdef SWAPPED
    int value, tag;
#else
    int tag, value;
#endif
};

static struct sample s = { .tag = 1, .value = 30 };
static volatile sig_atomic_t seen;

static void handler(int signal) { seen += signal; }

static void *writer(void *out) {
    for (int i = 0; i < 1000; i++)
        if (write(*(int *)out, &s, sizeof s) != sizeof s)
            abort();
    return NULL;
}

static int file(void) { return open("out.bin", O_RDWR | O_CREAT | O_TRUNC, 0644); }

static void send_on(int type, const char *how) {
    int ends[2];
    if (socketpair(AF_UNIX, type, 0, ends))
        abort();
    struct iovec part = { &s, sizeof s };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    struct mmsghdr headers[2] = { { .msg_hdr = header }, { .msg_hdr = header } };
    if (!strcmp(how, "sendmsg"))
        sendmsg(ends[0], &header, 0);
    else if (!strcmp(how, "sendmmsg"))
        sendmmsg(ends[0], headers, 2, 0);
    else
        send(ends[0], &s, sizeof s, 0);
}

static void signals(void) {
    struct sigaction action = { .sa_handler = handler };
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGRTMIN + 3, &action, NULL);
    struct itimerval soon = { { 0, 0 }, { 0, 20000 } };
    setitimer(ITIMER_REAL, &soon, NULL);
    raise(SIGRTMIN + 3);
    while (seen < SIGALRM + SIGRTMIN + 3)
        pause();
    pid_t child = fork();
    if (!child) {
        raise(SIGSTOP);
        _exit(7);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    printf("stopped %d\n", WIFSTOPPED(status) ? WSTOPSIG(status) : 0);
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    printf("exit %d\n", WEXITSTATUS(status));
}

static void children(void) {
    pid_t child;
    char *words[] = { "sh", "-c", "echo spawned", NULL };
    posix_spawnp(&child, "sh", NULL, NULL, words, environ);
    waitpid(child, NULL, 0);
    child = vfork();
    if (!child) {
        execlp("sh", "sh", "-c", "echo vforked; exit 5", (char *)NULL);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    printf("exit %d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int fd;
    if (!strcmp(how, "write")) {
        write(file(), &s, sizeof s);
    } else if (!strcmp(how, "writev")) {
        struct iovec parts[2] = { { "head", 4 }, { &s, sizeof s } };
        writev(STDOUT_FILENO, parts, 2);
    } else if (!strcmp(how, "pwrite")) {
        pwrite(file(), &s, sizeof s, 17);
    } else if (!strcmp(how, "mmap")) {
        ftruncate(fd = file(), 4096);
        memcpy((char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) + 17, &s, sizeof s);
    } else if (!strcmp(how, "deleted")) {
        fd = file();
        unlink("out.bin");
        write(fd, &s, sizeof s);
    } else if (!strcmp(how, "ioctl")) {
        fd = open("/dev/zero", O_RDWR);
        ioctl(fd, _IOW('U', 12, int), &argc);
        ioctl(fd, _IOW('U', 13, struct sample), &s);
    } else if (!strcmp(how, "setsockopt")) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &s, sizeof s);
    } else if (!strcmp(how, "send") || !strcmp(how, "sendmsg") || !strcmp(how, "sendmmsg")) {
        send_on(SOCK_DGRAM, how);
    } else if (!strcmp(how, "stream")) {
        send_on(SOCK_STREAM, "send");
    } else if (!strcmp(how, "pipe")) {
        int ends[2];
        pipe(ends);
        write(ends[1], &s, sizeof s);
    } else if (!strcmp(how, "bind")) {
        struct sockaddr_in address = { .sin_family = AF_INET };
        memcpy(&address.sin_addr, "\x7f\0\0", 3);
        ((char *)&address.sin_addr)[3] = *(char *)&s;
        bind(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&address, sizeof address);
    } else if (!strcmp(how, "signal")) {
        signal(SIGUSR1, handler);
        signal(SIGUSR2, handler);
        kill(getpid(), *(int *)&s == 1 ? SIGUSR1 : SIGUSR2);
    } else if (!strcmp(how, "child")) {
        if (!fork())
            _exit(*(int *)&s);
        wait(NULL);
    } else if (!strcmp(how, "threads")) {
        pthread_t threads[4];
        int outs[4];
        for (int i = 0; i < 4; i++) {
            char name[] = { 'o', (char)('0' + i), 0 };
            outs[i] = open(name, O_WRONLY | O_CREAT, 0644);
            pthread_create(&threads[i], NULL, writer, &outs[i]);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    } else if (!strcmp(how, "varying")) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        printf("same\n%ld %ld\nand %d\n", now.tv_sec, now.tv_nsec, *(int *)&s);
    } else if (!strcmp(how, "coins")) {
        unsigned char thrown[2000];
        FILE *source = fopen("/dev/urandom", "r");
        if (!source || fread(thrown, 1, sizeof thrown, source) != sizeof thrown) return 1;
        for (unsigned at = 0; at < sizeof thrown; at++) puts(thrown[at] & 1 ? "heads" : "tails");
    } else if (!strcmp(how, "pid")) {
        printf("same\n%ld\nagain\n", 1000000000L + getpid());
    } else if (!strcmp(how, "place")) {
        char folder[4096];
        printf("in %s\n", getcwd(folder, sizeof folder));
    } else if (!strcmp(how, "pointer")) {
        struct { void *stack; struct sample s; } request = { &fd, { 1, 1 } };
        ioctl(open("/dev/zero", O_RDWR), _IOW('U', 14, request), &request);
    } else if (!strcmp(how, "count")) {
        fd = open("count", O_RDWR | O_CREAT, 0644);
        char old = '0';
        read(fd, &old, 1);
        old++;
        pwrite(fd, &old, 1, 0);
        printf("run %c\n", old);
    } else if (!strcmp(how, "signals")) {
        signals();
    } else if (!strcmp(how, "children")) {
        children();
    } else {
        return 2;
    }
    return 0;
}
