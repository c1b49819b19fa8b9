// Serves on the Unix socket that its first argument names until it is ended: one loop over all connections, or with
// -DTHREADS a thread for each. A request is a line of eight bytes. An answer has the value that was asked for, a random
// id and the time, as text, and the bytes of an object, whose members -DSWAPPED puts in the other order.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#ifdef SWAPPED
struct object { int length; int value; };
#else
struct object { int value; int length; };
#endif

static int random_number(void) {
    int number = 0, source = open("/dev/urandom", O_RDONLY);
    if (read(source, &number, sizeof number) != sizeof number) _exit(4);
    close(source);
    return number;
}

// False when the client is gone.
static int answer(int peer) {
    char request[9] = "", text[80];
    struct timespec now;
    for (size_t got = 0; got < 8;) {
        ssize_t more = read(peer, request + got, 8 - got);
        if (more <= 0) return 0;
        got += more;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    struct object object = { .value = atoi(request + 4), .length = 7 };
    int size = snprintf(text, sizeof text, "value %03d id %08x at %ld.%09ld\n", object.value, random_number(),
                        now.tv_sec, now.tv_nsec);
    memcpy(text + size, &object, sizeof object);
    return write(peer, text, size + sizeof object) > 0;
}

static void *serve(void *peer) {
    while (answer((int)(long)peer)) {}
    close((int)(long)peer);
    return 0;
}

int main(int count, char **arguments) {
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strncpy(at.sun_path, arguments[1], sizeof at.sun_path - 1);
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    unlink(at.sun_path);
    if (bind(end, (void *)&at, sizeof at) || listen(end, 64)) return 3;
#ifdef THREADS
    for (;;) {
        pthread_t thread;
        long peer = accept(end, 0, 0);
        if (peer < 0 || pthread_create(&thread, 0, serve, (void *)peer)) return 5;
        pthread_detach(thread);
    }
#else
    struct pollfd all[64] = { { .fd = end, .events = POLLIN } };
    for (int known = 1;;) {
        poll(all, known, -1);
        for (int one = known - 1; one > 0; one--) {
            if (!all[one].revents || answer(all[one].fd)) continue;
            close(all[one].fd);
            all[one] = all[--known];
        }
        if (all[0].revents && known < 64) all[known++] = (struct pollfd){ .fd = accept(end, 0, 0), .events = POLLIN };
    }
#endif
}
