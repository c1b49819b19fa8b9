/* A server without a network. Each request is a head with a list of fields and a body, made by one worker and freed by
 * another; each worker keeps sessions that live long. Arguments: "threads" or "forks", workers, requests of each.
 * With forks the workers are processes, made one after another, which change the sessions of their parent. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 64, SESSIONS = 4096, FIELDS = 8, MOST_WAITING = 256 };

struct field { struct field *next; uint32_t length; char text[]; };
struct request { struct request *next; struct field *fields; char *body; uint32_t length; };
struct session { struct session *next; uint64_t key; char *name; };
struct inbox { pthread_mutex_t lock; struct request *first; int waiting, is_closed; pthread_cond_t filled; };

static struct inbox inboxes[WORKERS];
static int workers;
static long requests;

static void *made(size_t bytes) {
    void *at = malloc(bytes);
    if (!at) abort();
    return at;
}

static uint32_t drawn(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static struct request *request(uint32_t *state) {
    struct request *made_one = made(sizeof *made_one);
    made_one->next = NULL, made_one->fields = NULL;
    for (int i = 0; i < FIELDS; i++) {
        uint32_t length = 8 + drawn(state) % 100;
        struct field *field = made(sizeof *field + length);
        memset(field->text, i, length);
        field->length = length, field->next = made_one->fields;
        made_one->fields = field;
    }
    made_one->length = 64 + drawn(state) % 2000;
    made_one->body = made(made_one->length);
    memset(made_one->body, 1, made_one->length);
    return made_one;
}

static uint64_t answered(struct request *one) {
    uint64_t sum = one->length + (unsigned char)one->body[one->length - 1];
    for (struct field *field = one->fields; field;) {
        struct field *next = field->next;
        sum += field->length + (unsigned char)field->text[field->length - 1];
        free(field);
        field = next;
    }
    free(one->body);
    free(one);
    return sum;
}

static void renew(struct session **sessions, uint32_t *state) {
    struct session **at = &sessions[drawn(state) % SESSIONS], *old = *at, *fresh = made(sizeof *fresh);
    size_t length = 8 + drawn(state) % 40;
    fresh->name = made(length);
    memset(fresh->name, 2, length);
    fresh->next = NULL, fresh->key = length;
    *at = fresh;
    if (old) free(old->name), free(old);
}

static struct session **sessions(uint32_t *state) {
    struct session **all = calloc(SESSIONS, sizeof *all);
    if (!all) abort();
    for (int i = 0; i < SESSIONS; i++) renew(all, state);
    return all;
}

/* False where the inbox is full. NULL closes it. */
static int put(struct inbox *inbox, struct request *one) {
    pthread_mutex_lock(&inbox->lock);
    int has_room = !one || inbox->waiting < MOST_WAITING;
    if (one && has_room) one->next = inbox->first, inbox->first = one, inbox->waiting++;
    if (!one) inbox->is_closed = 1;
    pthread_cond_signal(&inbox->filled);
    pthread_mutex_unlock(&inbox->lock);
    return has_room;
}

static struct request *taken(struct inbox *inbox, int waits, int *is_over) {
    pthread_mutex_lock(&inbox->lock);
    while (waits && !inbox->first && !inbox->is_closed) pthread_cond_wait(&inbox->filled, &inbox->lock);
    struct request *all = inbox->first;
    inbox->first = NULL, inbox->waiting = 0, *is_over = !all && inbox->is_closed;
    pthread_mutex_unlock(&inbox->lock);
    return all;
}

static uint64_t answered_all(struct request *one) {
    uint64_t sum = 0;
    while (one) {
        struct request *next = one->next;
        sum += answered(one);
        one = next;
    }
    return sum;
}

static void *work(void *argument) {
    long own = (long)argument;
    uint32_t state = (uint32_t)own + 1;
    struct session **kept = sessions(&state);
    struct inbox *inbox = &inboxes[own], *next = &inboxes[(own + 1) % workers];
    uint64_t sum = 0;
    int is_over = 0;
    for (long i = 0; i < requests; i++) {
        struct request *one = request(&state);
        while (!put(next, one)) {
            sum += answered_all(taken(inbox, 0, &is_over));
            sched_yield();
        }
        renew(kept, &state);
        sum += answered_all(taken(inbox, 0, &is_over));
    }
    put(next, NULL);
    while (!is_over) sum += answered_all(taken(inbox, 1, &is_over));
    return (void *)(uintptr_t)sum;
}

static uint64_t of_process(struct session **kept, long own) {
    uint32_t state = (uint32_t)own + 1;
    uint64_t sum = 0;
    for (long i = 0; i < requests; i++) {
        struct request *one = request(&state);
        renew(kept, &state);
        sum += answered(one);
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    workers = atoi(argv[2]), requests = atol(argv[3]);
    if (workers < 1 || workers > WORKERS) return 2;
    uint64_t sum = 0;
    if (!strcmp(argv[1], "threads")) {
        pthread_t all[WORKERS];
        for (int i = 0; i < workers; i++)
            pthread_mutex_init(&inboxes[i].lock, NULL), pthread_cond_init(&inboxes[i].filled, NULL);
        for (long i = 0; i < workers; i++) pthread_create(&all[i], NULL, work, (void *)i);
        for (int i = 0; i < workers; i++) {
            void *own = NULL;
            pthread_join(all[i], &own);
            sum += (uintptr_t)own;
        }
    } else {
        uint32_t state = 1;
        struct session **kept = sessions(&state);
        for (int i = 0; i < workers; i++) {
            int ends[2];
            uint64_t own = 0;
            if (pipe(ends)) return 1;
            pid_t child = fork();
            if (child == 0) {
                own = of_process(kept, i);
                _exit(write(ends[1], &own, sizeof own) != sizeof own);
            }
            if (read(ends[0], &own, sizeof own) != sizeof own || waitpid(child, NULL, 0) != child) return 1;
            close(ends[0]), close(ends[1]);
            sum += own;
        }
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
