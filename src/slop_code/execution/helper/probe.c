/* probe MILLISECONDS: use a processor for so long, and print the share of the time in which there was one. */
#include "helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int probe_main(int argc, char **argv) {
    if (argc != 1) die("probe: one argument expected");
    double length = atof(argv[0]) / 1e3, began = seconds(CLOCK_MONOTONIC), elapsed;
    do elapsed = seconds(CLOCK_MONOTONIC) - began;
    while (elapsed < length);
    return printf("%.3f\n", elapsed > 0 ? seconds(CLOCK_PROCESS_CPUTIME_ID) / elapsed : 1.0) < 0;
}
