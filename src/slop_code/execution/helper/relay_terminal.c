/* Terminals of calls that are relayed. The line discipline is that of the subject's kernel; the tests' terminal passes
 * every byte on unchanged until the call ends. What is typed before the call has begun is echoed by both. */
#include "relay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* The terminal among the descriptors of a call, which becomes raw. */
struct terminal read_terminal(const int *fds) {
    struct terminal terminal = {0};
    int first = -1;
    for (int i = STREAMS - 1; i >= 0; i--)
        if (isatty(fds[i])) terminal.streams |= 1u << i, first = fds[i];
    if (first < 0 || tcgetattr(first, &terminal.settings) != 0) return (struct terminal){0};
    ioctl(first, TIOCGWINSZ, &terminal.size);
    struct termios raw = terminal.settings;
    cfmakeraw(&raw);
    tcsetattr(first, TCSANOW, &raw);
    return terminal;
}

void restore_terminal(const struct relayed *call) {
    for (int i = 0; i < STREAMS; i++)
        if (call->terminal.streams & 1u << i && call->streams[i].fd >= 0) tcsetattr(call->streams[i].fd, TCSANOW, &call->terminal.settings);
}

/* Returns the relay's side of a new terminal, or -1; `inner` is the side of the call. */
int open_terminal(const struct terminal *terminal, int *inner) {
    int outer = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    const char *name = outer >= 0 && grantpt(outer) == 0 && unlockpt(outer) == 0 ? ptsname(outer) : NULL;
    *inner = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
    if (*inner >= 0) {
        tcsetattr(*inner, TCSANOW, &terminal->settings);
        ioctl(*inner, TIOCSWINSZ, &terminal->size);
        return outer;
    }
    if (outer >= 0) close(outer);
    return -1;
}
