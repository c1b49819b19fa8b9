/* Balls that fall into a box and come to rest on each other, put there in any order; prints where they are. */
#include <stdio.h>
#include <stdlib.h>
#include <chipmunk/chipmunk.h>

static unsigned long seed = 1;
static double chance(void) {
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return (double)(seed >> 11) / 9007199254740992.0;
}

int main(int argc, char **argv) {
    int balls = argc > 1 ? atoi(argv[1]) : 10000, steps = argc > 2 ? atoi(argv[2]) : 60;
    int columns = 200;
    cpSpace *space = cpSpaceNew();
    cpSpaceSetGravity(space, cpv(0, -100));
    cpSpaceSetIterations(space, argc > 3 ? atoi(argv[3]) : 10);
    cpSpaceSetCollisionSlop(space, 0.5);
    cpBody *ground = cpSpaceGetStaticBody(space);
    double width = columns * 10.0;
    cpVect corners[4] = {cpv(-5, 1e5), cpv(-5, -5), cpv(width + 5, -5), cpv(width + 5, 1e5)};
    for (int side = 0; side < 3; side++) {
        cpShape *wall = cpSpaceAddShape(space, cpSegmentShapeNew(ground, corners[side], corners[side + 1], 1));
        cpShapeSetElasticity(wall, 0);
        cpShapeSetFriction(wall, 0.9);
    }
    cpBody **all = calloc(balls, sizeof *all);
    int *places = calloc(balls, sizeof *places);
    for (int ball = 0; ball < balls; ball++) {
        int other = (int)(chance() * (ball + 1));
        places[ball] = places[other];
        places[other] = ball;
    }
    for (int ball = 0; ball < balls; ball++) {
        double radius = 4 + chance();
        cpBody *body = cpSpaceAddBody(space, cpBodyNew(radius * radius / 10, cpMomentForCircle(radius * radius / 10, 0, radius, cpvzero)));
        cpBodySetPosition(body, cpv(places[ball] % columns * 10.0 + 5 * chance(), places[ball] / columns * 10.0));
        cpShape *shape = cpSpaceAddShape(space, cpCircleShapeNew(body, radius, cpvzero));
        cpShapeSetElasticity(shape, 0);
        cpShapeSetFriction(shape, 0.9);
        all[ball] = body;
    }
    for (int step = 0; step < steps; step++) cpSpaceStep(space, 1.0 / 60.0);
    double x = 0, y = 0, turned = 0;
    for (int ball = 0; ball < balls; ball++) {
        cpVect at = cpBodyGetPosition(all[ball]);
        x += at.x, y += at.y, turned += cpBodyGetAngle(all[ball]);
    }
    printf("%.6f %.6f %.6f\n", x / balls, y / balls, turned);
    return 0;
}
