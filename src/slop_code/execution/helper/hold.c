/* hold FD: stands for a judge that is forked elsewhere. It sends descriptors of the namespaces of its box to whoever
 * has the other end of FD, so that the forked judge can enter them, and exits with the status that it receives
 * there. */
#include "helper.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* In the order in which they are entered: the user namespace comes last, since entering it gives up the capabilities
 * that the others need. */
static const char *const namespaces[] = {"net", "ipc", "uts", "pid", "cgroup", "mnt", "user"};
#define NAMESPACES (sizeof namespaces / sizeof *namespaces)

int hold_main(int argc, char **argv) {
    int descriptors[NAMESPACES], fd = argc == 1 ? atoi(argv[0]) : -1;
    int32_t status;
    for (size_t i = 0; i < NAMESPACES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/ns/%s", namespaces[i]);
        descriptors[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (descriptors[i] < 0) die("cannot open %s", path);
    }
    if (send_descriptors(fd, "", 1, descriptors, NAMESPACES) != 0) die("hold: nobody waits for this box");
    for (size_t i = 0; i < NAMESPACES; i++) close(descriptors[i]);
    /* Without a status, the forked judge was lost: this fails, and so does the evaluation. */
    read_all(fd, &status, sizeof status);
    return status & 255;
}
