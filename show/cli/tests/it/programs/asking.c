// Opens six connections to the Unix socket that its first argument names and asks five things on each, in another order
// each time. With a second argument each request takes any of the connections.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
enum { CONNECTIONS = 6, REQUESTS = 5, ALL = CONNECTIONS * REQUESTS };

static void shuffle(int *list, int count) {
    for (int last = count - 1; last > 0; last--) {
        int other = rand() % (last + 1), kept = list[last];
        list[last] = list[other];
        list[other] = kept;
    }
}

int main(int count, char **arguments) {
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct timespec now;
    int ends[CONNECTIONS], order[CONNECTIONS], requests[ALL], asked[CONNECTIONS] = { 0 };
    strncpy(at.sun_path, arguments[1], sizeof at.sun_path - 1);
    clock_gettime(CLOCK_REALTIME, &now);
    srand(now.tv_nsec ^ getpid());
    for (int one = 0; one < CONNECTIONS; one++) order[one] = one;
    for (int one = 0; one < ALL; one++) requests[one] = one;
    shuffle(order, CONNECTIONS);
    shuffle(requests, ALL);
    for (int one = 0; one < CONNECTIONS; one++) {
        ends[order[one]] = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(ends[order[one]], (void *)&at, sizeof at)) return 1;
    }
    for (int one = 0; one < ALL; one++) {
        char request[16], text[128];
        int connection = requests[one] / REQUESTS;
        int number = count > 2 ? requests[one] : 10 * connection + asked[connection]++;
        if (count > 2) connection = rand() % CONNECTIONS;
        snprintf(request, sizeof request, "ask %03d\n", number);
        if (write(ends[connection], request, 8) != 8 || read(ends[connection], text, sizeof text) <= 0) return 2;
    }
    return 0;
}
