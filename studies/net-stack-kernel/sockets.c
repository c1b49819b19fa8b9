// TCP over the loopback on one thread: each round sends a message over every connection in turn, and takes it off at the
// other end, which answers with one byte. With one connection all that it needs stays in the caches; with many nothing does.
// Usage: sockets CONNECTIONS ROUNDS BYTES
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void connect_pair(int listener, const struct sockaddr_in *address, int *client, int *server)
{
	int one = 1;

	*client = socket(AF_INET, SOCK_STREAM, 0);
	if (*client < 0 || connect(*client, (const struct sockaddr *)address, sizeof *address) < 0)
		fail("connect");
	*server = accept(listener, NULL, NULL);
	if (*server < 0)
		fail("accept");
	setsockopt(*client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(*server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void pass(int from, int to, char *buffer, size_t bytes)
{
	if (send(from, buffer, bytes, 0) != (ssize_t)bytes)
		fail("send");
	if (recv(to, buffer, bytes, MSG_WAITALL) != (ssize_t)bytes)
		fail("recv");
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: sockets CONNECTIONS ROUNDS BYTES\n");
		return 2;
	}
	int connections = atoi(argv[1]), rounds = atoi(argv[2]);
	size_t bytes = (size_t)atoi(argv[3]);
	if (connections < 1 || rounds < 1 || bytes < 1 || bytes > 16384)
		return 2;
	struct rlimit files = { 2 * (rlim_t)connections + 16, 2 * (rlim_t)connections + 16 };
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		fail("setrlimit");
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7000) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
	    bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 16) < 0)
		fail("listen");
	int *client = calloc(connections, sizeof *client), *server = calloc(connections, sizeof *server);
	char *buffer = malloc(bytes);
	if (!client || !server || !buffer)
		fail("memory");
	memset(buffer, 'x', bytes);
	for (int i = 0; i < connections; i++)
		connect_pair(listener, &address, &client[i], &server[i]);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < connections; i++) {
			pass(client[i], server[i], buffer, bytes);
			pass(server[i], client[i], buffer, 1);
		}
	}
	printf("%d connections, %d messages each\n", connections, rounds);
	return 0;
}
