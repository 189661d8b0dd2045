/* run ARGUMENT...: the launcher. To the tests it is the submission's process, with its output, exit status and signals.
 * The command runs in the subject's box. The launcher itself runs in the judge's box, without any privilege. */
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_OF_BOX_S 60

static struct {
    char *tests, *workspace;
    char *command; /* the first word of the submission's command, which the launcher stands for; empty: the first argument */
    char *entry;   /* the entry file, as the entrypoint names it */
    unsigned long long memory, processes, output; /* limits of the submission; the launcher enforces only `output` */
} conf = {.tests = "", .workspace = "", .command = "", .entry = ""};
static unsigned long long forwarded;
static char **called; /* the command */
static const int passed_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, 0};

/* One of the subject's two output streams on its way to the tests. */
struct stream {
    int from; /* -1: there is nothing (more) to forward */
    int to;
    size_t held;
    char buffer[PIPE_BUF];
};

static void read_conf(void) {
    FILE *file = fopen(CONF_PATH, "re");
    char *line = NULL;
    size_t size = 0;
    if (!file) die("cannot read " CONF_PATH);
    for (; getdelim(&line, &size, 0, file) > 0; line = NULL, size = 0) {
        char *value = strchr(line, '=');
        if (!value) die("cannot read " CONF_PATH);
        *value++ = 0;
        if (strcmp(line, "tests") == 0) conf.tests = value;
        else if (strcmp(line, "workspace") == 0) conf.workspace = value;
        else if (strcmp(line, "command") == 0) conf.command = value;
        else if (strcmp(line, "entry") == 0) conf.entry = value;
        else if (strcmp(line, "code") == 0) add_test_code(value, 0);
        else if (strcmp(line, "assumed") == 0) add_test_code(value, 1);
        else if (strcmp(line, "memory") == 0) conf.memory = strtoull(value, NULL, 10);
        else if (strcmp(line, "processes") == 0) conf.processes = strtoull(value, NULL, 10);
        else if (strcmp(line, "output") == 0) conf.output = strtoull(value, NULL, 10);
    }
    fclose(file);
    if (!*conf.tests || !*conf.workspace) die("cannot read " CONF_PATH);
}

/* Whether the subject's box still takes calls. A connection alone does not tell: when the box ends, the kernel may close
 * its listener last. A packet that asks for nothing is read, and the connection closed; without a reader it is reset.
 * No answer in time is one, too, so that no call waits for ever. */
static int box_takes_calls(void) {
    uint32_t nothing = 0;
    struct timeval limit = {END_OF_BOX_S, 0};
    int fd = connect_to(SOCKET_PATH);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return 0;
    if (send(fd, &nothing, sizeof nothing, MSG_NOSIGNAL) != sizeof nothing) return 0;
    return recv(fd, &nothing, sizeof nothing, 0) == 0 || errno == EAGAIN;
}

/* If nobody takes calls any more, the subject's box has ended, and `init` is about to end everything here. Until then no
 * test may see this call fail. The wait is bounded, for a call by a program that outlives its boxes. */
static _Noreturn void give_up(const char *message) {
    int error = errno;
    if (!box_takes_calls()) sleep(END_OF_BOX_S);
    errno = error;
    die("%s", message);
}

/* Tests may copy the entry file to a folder of their own and run it there by its name. A call that fails since its
 * working directory has no such file would otherwise look like a failure of the submission. */
static int entry_is_missing(char **argv) {
    char path[PATH_MAX];
    int named = 0;
    for (char **word = argv; *word; word++) named |= strcmp(*word, conf.entry) == 0;
    if (!named || !*conf.entry || *conf.entry == '/' || access(conf.entry, F_OK) == 0) return 0;
    return snprintf(path, sizeof path, "%s/%s", conf.workspace, conf.entry) < (int)sizeof path && access(path, F_OK) == 0;
}

/* Pipes are forwarded, so that their bytes are counted and no daemon of the subject can keep a pipe of the tests open.
 * Files that the subject could not open itself, such as pytest's capture files, are forwarded too: with the descriptor
 * the subject could change what other tests printed. */
static int must_forward(int fd, struct stat *information) {
    char self[64], path[4096];
    struct stat named;
    if (fstat(fd, information) != 0) return 0;
    if (S_ISFIFO(information->st_mode)) return 1;
    if (!S_ISREG(information->st_mode)) return 0;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(self, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    size_t workspace = strlen(conf.workspace);
    if (strncmp(path, "/tmp/", 5) != 0 && (strncmp(path, conf.workspace, workspace) != 0 || path[workspace] != '/')) return 1;
    /* A deleted file, or one outside of the box, may have had such a name, too. */
    return stat(path, &named) != 0 || named.st_dev != information->st_dev || named.st_ino != information->st_ino;
}

/* Output that is not forwarded goes to the test's own descriptor. A pipe that is stdout and stderr stays one. */
static void redirect_output(int *given, struct stream *streams) {
    struct stat out, err;
    int out_pipe = must_forward(1, &out), err_pipe = must_forward(2, &err);
    int same = out_pipe && err_pipe && out.st_ino == err.st_ino && out.st_dev == err.st_dev;
    for (int i = 0; i < 2; i++) {
        int ends[2];
        streams[i] = (struct stream){.from = -1, .to = i + 1};
        given[i + 1] = i + 1;
        if (!(i ? err_pipe : out_pipe)) continue;
        if (i && same) {
            given[2] = given[1];
            continue;
        }
        if (pipe2(ends, O_CLOEXEC) != 0) die("no pipe");
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        streams[i].from = ends[0];
        given[i + 1] = ends[1];
    }
}

static uint32_t put_word(int fd, const char *word) {
    size_t length = strlen(word) + 1;
    write_all(fd, word, length);
    return (uint32_t)length;
}

/* The words are in a memory file, not in the packet: arguments and environment may be larger than a packet can be. */
static int request_file(char **argv, const char *cwd, struct request *request) {
    int fd = memfd_create("call", MFD_CLOEXEC);
    if (fd < 0) die("no memory file");
    *request = (struct request){.magic = MAGIC, .size = put_word(fd, cwd)};
    for (; argv[request->argc]; request->argc++) request->size += put_word(fd, argv[request->argc]);
    for (char **variable = environ; *variable; variable++) {
        if (is_private(*variable)) continue;
        request->size += put_word(fd, *variable);
        request->envc++;
    }
    return fd;
}

static int send_request(char **argv, const char *cwd, const int *given) {
    struct request request;
    int fds[REQUEST_FDS] = {given[0], given[1], given[2], request_file(argv, cwd, &request)};
    int fd = connect_to(SOCKET_PATH);
    if (fd < 0) give_up("no answer from the subject's box");
    if (send_descriptors(fd, &request, sizeof request, fds, REQUEST_FDS) != 0) give_up("cannot pass the call on");
    close(fds[3]);
    for (int i = 0; i < 3; i++)
        if (given[i] > 2) close(given[i]);
    return fd;
}

/* Copies a word with its 0, as far as there is room; returns the number of bytes. */
static uint32_t put_text(char *target, size_t room, const char *word) {
    size_t length = strlen(word) + 1;
    if (length > room) length = room;
    memcpy(target, word, length);
    return (uint32_t)length;
}

/* As `format_size` of reporting writes it; valid until the next call. */
static const char *size_text(unsigned long long size) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    static char text[32];
    double value = (double)size;
    int power = 0;
    for (; value >= 1024 && power < 4; power++) value /= 1024;
    snprintf(text, sizeof text, "%.4g %s", value, units[power]);
    return text;
}

/* Waits until the spawner has recorded it, so that the record is there before the tests go on. */
static _Noreturn void end_for_output(void) {
    struct notice notice = {STRUCK_MAGIC, {.limit = OUTPUT_LIMIT}};
    char end;
    for (char **word = called; *word && notice.struck.size < CALL_TEXT; word++)
        notice.struck.size += put_text(notice.struck.call + notice.struck.size, CALL_TEXT - notice.struck.size, *word);
    int fd = connect_to(SOCKET_PATH);
    if (fd >= 0 && send(fd, &notice, sizeof notice, MSG_NOSIGNAL) == sizeof notice && recv(fd, &end, 1, 0) > 0) {}
    errno = 0;
    die("ended: the submission printed more than its limit of %s in one call", size_text(conf.output));
}

static void stop_forwarding(struct stream *stream) {
    if (stream->from >= 0) close(stream->from);
    stream->from = -1;
    stream->held = 0;
}

/* Forwards output without blocking; returns 0 when nothing can be forwarded for now. */
static int forward(struct stream *stream) {
    if (stream->from < 0) return 0;
    if (stream->held == 0) {
        ssize_t got = read(stream->from, stream->buffer, sizeof stream->buffer);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
        if (got <= 0) {
            stop_forwarding(stream);
            return 0;
        }
        stream->held = (size_t)got;
        forwarded += (unsigned long long)got;
        errno = 0;
        /* Counted over both streams, before pytest has to keep it: a flood must not fill the judge's memory. */
        if (forwarded > conf.output) end_for_output();
    }
    struct pollfd room = {stream->to, POLLOUT, 0};
    if (poll(&room, 1, 0) <= 0) return 0;
    ssize_t wrote = write(stream->to, stream->buffer, stream->held);
    if (wrote < 0 && errno != EINTR) stop_forwarding(stream);
    if (wrote > 0) memmove(stream->buffer, stream->buffer + wrote, stream->held -= (size_t)wrote);
    return 1;
}

/* Forwards what the call wrote before its end, and no more: a daemon that it left may keep the pipe open for ever. */
static void drain(struct stream *stream) {
    while (stream->from >= 0) {
        if (forward(stream)) continue;
        if (stream->from < 0 || stream->held == 0) return;
        struct pollfd room = {stream->to, POLLOUT, 0};
        poll(&room, 1, -1);
    }
}

/* These signals stop a process and never kill it: raised here, they would stop the launcher for ever. */
static int only_stops(int number) { return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU; }

/* The tests see the same end: the exit status, or death of the same signal, without a core file of the launcher. */
static _Noreturn void exit_like(struct reply reply) {
    if (reply.limit == MEMORY_LIMIT)
        fprintf(stderr, "slop-code: ended: the submission took more memory than its limit of %s\n", size_text(conf.memory));
    if (reply.limit == PROCESS_LIMIT)
        fprintf(stderr, "slop-code: ended: the submission started more processes than its limit of %llu\n", conf.processes);
    if (WIFSIGNALED(reply.status) && !only_stops(WTERMSIG(reply.status))) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        default_signals();
        raise(WTERMSIG(reply.status));
    }
    _exit(status_to_exit(reply.status));
}

static void pass_signals(int signals, int box) {
    struct signalfd_siginfo information;
    while (read(signals, &information, sizeof information) == sizeof information) {
        int32_t number = (int32_t)information.ssi_signo;
        send(box, &number, sizeof number, MSG_NOSIGNAL);
    }
}

static void wait_for_more(int box, int signals, struct stream *streams) {
    struct pollfd watched[4] = {{box, POLLIN, 0}, {signals, POLLIN, 0}};
    for (int i = 0; i < 2; i++) {
        /* A stream with held bytes waits until they can be written, an empty stream until there is output to read. */
        watched[i + 2].fd = streams[i].from < 0 ? -1 : streams[i].held ? streams[i].to : streams[i].from;
        watched[i + 2].events = streams[i].held ? POLLOUT : POLLIN;
    }
    poll(watched, 4, -1);
}

int run_main(int argc, char **argv) {
    char cwd[4096];
    int given[3] = {0, 1, 2};
    struct stream streams[2];
    read_conf();
    argv[-1] = conf.command; /* in the place of our own name */
    if (*conf.command) argv--, argc++;
    errno = 0;
    if (argc < 1) die("usage: run COMMAND...");
    if (!getcwd(cwd, sizeof cwd)) die("no working directory");
    int missing = entry_is_missing(argv);
    called = argv;
    hand_over_call(argv, environ, cwd, conf.tests);
    int signals = open_signals(passed_signals);
    signal(SIGPIPE, SIG_IGN); /* a test that closes its end does not end the call */
    redirect_output(given, streams);
    int box = send_request(argv, cwd, given);
    for (;;) {
        struct reply reply;
        ssize_t got = recv(box, &reply, sizeof reply, MSG_DONTWAIT);
        if (got == sizeof reply) {
            for (int i = 0; i < 2; i++) drain(&streams[i]);
            if (missing && reply.status != 0)
                fprintf(stderr, "slop-code: hint: the entry file %s is in %s, and not in %s, the working directory of this call\n",
                        conf.entry, conf.workspace, cwd);
            exit_like(reply);
        }
        errno = got < 0 ? errno : 0;
        if (got >= 0 || errno != EAGAIN) give_up("the subject's box gave up this call");
        pass_signals(signals, box);
        int moved = forward(&streams[0]) | forward(&streams[1]);
        if (!moved) wait_for_more(box, signals, streams);
    }
}
