/* Both ends of the relay: calls that are accepted from launchers, and calls that are passed to the spawner. */
#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static uint32_t last_id;
static int to_spawner = -1, of_subject = -1;

/* Launchers are in this PID namespace. Any other client is the submission, where its runtime lets it reach the
 * socket. */
static int is_launcher(int fd) {
    struct ucred client = {0};
    socklen_t size = sizeof client;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &client, &size) == 0 && client.pid != 0;
}

static int is_same_file(int one, int other) {
    struct stat first, second;
    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

/* The opening, followed by the words of the request; NULL if they are not there. */
static char *read_words(int fd, const struct opening *opening, size_t *size) {
    uint32_t words = opening->request.size;
    *size = sizeof *opening + words;
    char *data = *size <= MAX_FRAME ? malloc(*size) : NULL;
    if (!data) return NULL;
    memcpy(data, opening, sizeof *opening);
    if (pread(fd, data + sizeof *opening, words, 0) == (ssize_t)words) return data;
    free(data);
    return NULL;
}

static int accept_request(int fd) {
    struct opening opening = {0};
    int fds[REQUEST_FDS];
    size_t size;
    if (receive_descriptors(fd, &opening.request, sizeof opening.request, fds, REQUEST_FDS) != sizeof opening.request) return 0;
    opening.has_one_output = is_same_file(fds[1], fds[2]);
    opening.terminal = read_terminal(fds);
    char *data = read_words(fds[3], &opening, &size);
    struct relayed *call = data ? add_relayed(++last_id, fd) : NULL;
    if (call) send_frame(call->id, CALL_OPEN, OPEN_CALL, data, size), call->terminal = opening.terminal;
    for (int i = 0; i < REQUEST_FDS; i++)
        if (call && i < STREAMS && !(i == 2 && opening.has_one_output)) call->streams[i].fd = fds[i];
        else close(fds[i]);
    free(data);
    return call != NULL;
}

static int accept_packet(int fd, const char *packet, size_t size) {
    char taken[MAX_PACKET];
    struct relayed *call = recv(fd, taken, sizeof taken, 0) == (ssize_t)size ? add_relayed(++last_id, fd) : NULL;
    if (call) send_frame(call->id, CALL_OPEN, OPEN_PACKET, packet, size);
    return call != NULL;
}

void open_in_judge(int listener) {
    char packet[MAX_PACKET];
    uint32_t magic = 0;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    struct timeval timeout = {REQUEST_TIMEOUT_S, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    ssize_t got = is_launcher(fd) ? recv(fd, packet, sizeof packet, MSG_PEEK) : -1;
    if (got >= (ssize_t)sizeof magic) memcpy(&magic, packet, sizeof magic);
    int is_open = got < (ssize_t)sizeof magic ? 0 : magic == MAGIC ? accept_request(fd) : accept_packet(fd, packet, (size_t)got);
    if (!is_open) close(fd);
}

static int duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

/* Makes the descriptors of a call: `theirs` for the spawner, the other ends for the streams of the relay. */
static void make_streams(struct relayed *call, const struct opening *opening, int *theirs) {
    int outer = -1, inner = -1;
    call->terminal = opening->terminal;
    if (call->terminal.streams) outer = open_terminal(&call->terminal, &inner);
    for (int i = 0; i < STREAMS; i++) {
        int ends[2] = {-1, -1}, is_shared = i == 2 && opening->has_one_output;
        if (is_shared) ends[1] = duplicate(theirs[1]);
        else if (call->terminal.streams & 1u << i) ends[i == 0] = duplicate(outer), ends[i != 0] = duplicate(inner);
        else if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
        theirs[i] = ends[i != 0];
        if (is_shared) continue;
        call->streams[i].fd = ends[i == 0];
        fcntl(call->streams[i].fd, F_SETFL, fcntl(call->streams[i].fd, F_GETFL) | O_NONBLOCK);
    }
    if (outer >= 0) close(outer), close(inner);
}

static int send_to_spawner(struct relayed *call, const struct frame *frame, const char *data) {
    struct opening opening;
    int fds[REQUEST_FDS];
    if (frame->stream == OPEN_PACKET) return send(call->fd, data, frame->size, MSG_NOSIGNAL) == (ssize_t)frame->size;
    memcpy(&opening, data, sizeof opening);
    make_streams(call, &opening, fds);
    fds[STREAMS] = memfd_create("call", MFD_CLOEXEC);
    if (fds[STREAMS] >= 0) write_all(fds[STREAMS], data + sizeof opening, frame->size - sizeof opening);
    /* It fails if one of them could not be made. */
    int is_sent = send_descriptors(call->fd, &opening.request, sizeof opening.request, fds, REQUEST_FDS) == 0;
    for (int i = 0; i < REQUEST_FDS; i++)
        if (fds[i] >= 0) close(fds[i]);
    return is_sent;
}

void open_in_subject(const struct frame *frame, const char *data) {
    int ends[2];
    errno = 0;
    if (frame->stream != OPEN_PACKET && frame->size < sizeof(struct opening)) die("the judge's box sent half a call");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) die("no socket for a call");
    struct relayed *call = add_relayed(frame->call, ends[0]);
    /* A call that cannot be passed on ends: the launcher says that it was given up. */
    if (call && send_to_spawner(call, frame, data)) send_descriptors(to_spawner, "", 1, &ends[1], 1);
    close(ends[1]);
    if (!call) close(ends[0]), send_frame(frame->call, CALL_END, 0, NULL, 0);
}

/* Of the judge's box, or of the subject's, in the loopback network that both share. */
int loopback_socket(const char *port, int listens) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    int failed = listens ? bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0
                         : connect(fd, (struct sockaddr *)&address, sizeof address) != 0;
    if (!failed) return fd;
    close(fd);
    return -1;
}

static void *relay_thread(void *unused) {
    (void)unused;
    relay(of_subject, -1);
}

int start_relay_thread(int connection) {
    pthread_t thread;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) die("no socket for calls");
    to_spawner = ends[0], of_subject = connection;
    signal(SIGPIPE, SIG_IGN);
    if (pthread_create(&thread, NULL, relay_thread, NULL) != 0) die("no thread for the relay");
    return ends[1];
}

/* relay LISTENER CONNECTION: the relay of the judge's box; both are descriptors. */
int relay_main(int argc, char **argv) {
    if (argc != 2) die("relay: two arguments expected");
    signal(SIGPIPE, SIG_IGN);
    relay(atoi(argv[1]), atoi(argv[0]));
}
