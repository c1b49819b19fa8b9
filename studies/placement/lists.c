/* Clinics with lists of patients, who move from list to list as time passes: each object is freed and made anew, and
   lists end up scattered. Arguments: clinics, steps. */
#include <stdio.h>
#include <stdlib.h>

struct patient {
    int left, visits;
    unsigned id;
};

struct link {
    struct link *next;
    struct patient *patient;
};

struct clinic {
    struct link *waiting, *inside;
};

static unsigned state = 1;

static unsigned next_random(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void push(struct link **list, struct patient *patient) {
    struct link *link = malloc(sizeof *link);
    if (!link) abort();
    link->patient = patient;
    link->next = *list;
    *list = link;
}

/* Each patient of a list is a step further; those that are ready leave it, with their links. */
static struct patient *step(struct link **list) {
    struct patient *ready = NULL;
    while (*list) {
        struct link *link = *list;
        if (--link->patient->left <= 0 && !ready) {
            ready = link->patient;
            *list = link->next;
            free(link);
        } else {
            list = &link->next;
        }
    }
    return ready;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 2000, steps = argc > 2 ? atoi(argv[2]) : 120;
    struct clinic *clinics = calloc((size_t)count, sizeof *clinics);
    if (!clinics) abort();
    unsigned long made = 0, done = 0, visits = 0;
    for (int now = 0; now < steps; now++) {
        for (int i = 0; i < count; i++) {
            struct clinic *clinic = &clinics[i];
            if (next_random() % 3) {
                struct patient *patient = malloc(sizeof *patient);
                if (!patient) abort();
                *patient = (struct patient){.left = (int)(next_random() % 40), .id = (unsigned)made++};
                push(&clinic->waiting, patient);
            }
            struct patient *patient = step(&clinic->waiting);
            if (patient) {
                patient->left = (int)(next_random() % 60);
                patient->visits++;
                push(&clinic->inside, patient);
            }
            patient = step(&clinic->inside);
            if (patient && next_random() % 10 == 0) {
                push(&clinics[next_random() % (unsigned)count].waiting, patient);
            } else if (patient) {
                done++;
                visits += (unsigned long)patient->visits;
                free(patient);
            }
        }
    }
    printf("%lu %lu %lu\n", made, done, visits);
    return 0;
}
