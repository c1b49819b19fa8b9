// Sends cars to the nearest free charging station: `stations [COUNT [CARS]]`.

#include "network.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : STATIONS;
    int cars = argc > 2 ? atoi(argv[2]) : 2000;
    if (count < 1 || count > STATIONS) {
        fprintf(stderr, "stations: between 1 and %d\n", STATIONS);
        return 1;
    }
    network_build(count);
    double paid = 0;
    int turned_away = 0;
    for (int car = 0; car < cars; car++) {
        int index = network_nearest(count, (float)(car * 7919 % 1000), (float)(car * 104729 % 1000));
        if (index < 0) {
            turned_away++;
            continue;
        }
        paid += network_charge(index, 10 + car % 50);
        if (car % 3 == 0) {
            network_leave(&stations[index]);
        }
    }
    int most = 0;
    for (int i = 1; i < count; i++) {
        if (stations[i].sold_kwh > stations[most].sold_kwh) {
            most = i;
        }
    }
    printf("%d cars, %d turned away, %.2f paid; %s of %s sold the most: %.0f kWh\n", cars, turned_away, paid,
           stations[most].name, stations[most].operator_name, stations[most].sold_kwh);
    return 0;
}
