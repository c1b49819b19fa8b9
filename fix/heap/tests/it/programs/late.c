#include <stdlib.h>
char *late(void) { char *object = malloc(72); object[0] = 3; return object; }
