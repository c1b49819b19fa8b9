// A network of charging stations in one array.

#include "network.h"
#include <stdio.h>

struct station stations[STATIONS];

static unsigned int state = 12345;

static unsigned int next_number(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

void network_build(int count) {
    for (int i = 0; i < count; i++) {
        struct station *station = &stations[i];
        station->x = (float)(next_number() % 100000) / 100;
        station->y = (float)(next_number() % 100000) / 100;
        station->posts = 2 + (int)(next_number() % 6);
        station->free_posts = station->posts;
        station->price = 0.4 + (double)(next_number() % 40) / 100;
        station->power_kw = next_number() % 2 ? 50 : 150;
        station->serviced = next_number() % 365;
        station->opened = 2010 + next_number() % 15;
        snprintf(station->name, sizeof(station->name), "station %d", i);
        snprintf(station->operator_name, sizeof(station->operator_name), "company %u", next_number() % 90);
    }
}

/* The nearest station with a post that is free; -1 where there is none. */
int network_nearest(int count, float x, float y) {
    int best = -1;
    float least = 0;
    for (int i = 0; i < count; i++) {
        if (stations[i].free_posts == 0) {
            continue;
        }
        float dx = stations[i].x - x, dy = stations[i].y - y;
        float distance = dx * dx + dy * dy;
        if (best < 0 || distance < least) {
            best = i;
            least = distance;
        }
    }
    return best;
}

/* Takes a post, and gives what is to be paid. */
double network_charge(int index, double kwh) {
    stations[index].free_posts--;
    stations[index].sold_kwh += kwh;
    return stations[index].price * kwh;
}

void network_leave(struct station *station) {
    if (station->free_posts < station->posts) {
        station->free_posts++;
    }
}
