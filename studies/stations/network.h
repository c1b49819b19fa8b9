#ifndef NETWORK_H
#define NETWORK_H

#define STATIONS 60000

/* A place where cars are charged. */
struct station {
    float x;
    float y;
    int free_posts;
    int posts;
    char name[40];
    double price;       /* For a kWh. */
    double sold_kwh;
    double power_kw;
    /* When it was last looked after. */
    unsigned int serviced;
    unsigned int opened;
    char operator_name[24];
};

extern struct station stations[STATIONS];

void network_build(int count);
int network_nearest(int count, float x, float y);
double network_charge(int index, double kwh);
void network_leave(struct station *station);

#endif
