/* serve LISTENER MEMORY PROCESSES FILESIZE NPROC FOLDER...: the spawner.
 * serve --relay PORT UID GID MEMORY PROCESSES FILESIZE NPROC FOLDER...: the same in a box with a kernel of its own.
 *
 * LISTENER is a descriptor, or the path of the socket over which `init --admit` sends it. NPROC limits all processes of
 * the user, so it is 0 (no limit) where the user has processes outside of the box. It is above PROCESSES, so that a
 * program that the kernel refuses a process leaves more than PROCESSES behind when it ends, and the watch sees them.
 * FOLDER is writable for the submission and of limited size.
 *
 * The spawner is process 1 of the subject's box, without privileges: the kernel lets no process of a box kill its
 * process 1. Other kernels do not know this rule, so with --relay the spawner is root and calls are another user's;
 * they come through the relay (relay.c), which connects to PORT of the loopback network. It starts what launchers ask
 * for, passes signals on, kills a call's process group when its launcher is gone, and kills everything in the box over
 * the memory limit or the process limit. It answers the judge's plugin, which asks what the box used. */
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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CALLS 1024
#define MAX_FILES 1024 /* open files of a process: the watch looks at each of them */
#define WATCH_MS 50
#define KILL_INTERVAL_US 200 /* short, as the next call waits for it */
/* The memory limit is for memory in use, which the watch measures. What a program maps may be more: each thread maps a
 * stack of megabytes, and runtimes reserve far more than they use. This only bounds what can be taken at a stroke. */
#define MAPPED_FACTOR 4
#define FORK_TRIES 20
#define FORK_INTERVAL_US 10000
#define MAX_SPARE 4 /* processes between those that a bomb leaves and the limit */

struct call {
    int fd; /* the launcher's connection */
    pid_t pid;
    size_t size; /* bytes of the text */
    char text[CALL_TEXT];
};

static struct call calls[MAX_CALLS];
static int call_count;
static int listener_is_shared; /* whether the submission, too, can reach the listener */
static int is_relayed;
static long call_uid = -1, call_gid = -1; /* -1: those of the spawner */
static struct { rlim_t memory, processes, file_size, of_user; } limits;

/* The call fails only where the hard limit is lower than `value`: then the stricter limit stays. */
static void set_limit(int resource, rlim_t value) {
    struct rlimit limit = {value, value};
    setrlimit(resource, &limit);
}

/* When memory runs out the kernel shall kill the submission and not the spawner. Raising its own score needs no
 * privilege, but the file belongs to the process only while it is dumpable. */
static void prefer_for_oom_kill(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd >= 0 && write(fd, "1000", 4) < 0) {}
    if (fd >= 0) close(fd);
}

/* Reads the words of a request: argv and environment point into `text`. The launcher is on the judge's side, but tests
 * pass on what a submission printed, so every word is checked to lie inside the memory file. */
static void read_words(const struct request *request, int fd, char **cwd, char ***argv, char ***environment) {
    uint64_t size = request->size, words = (uint64_t)request->argc + request->envc;
    struct stat information;
    int is_whole = fstat(fd, &information) == 0 && information.st_size >= (off_t)size && words < size;
    char *text = is_whole ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    errno = 0;
    if (text == MAP_FAILED || text[size - 1] != 0) die("bad request");
    *argv = calloc(request->argc + 1ul, sizeof **argv), *environment = calloc(request->envc + 1ul, sizeof **environment);
    if (!*argv || !*environment) die("no memory for the call");
    *cwd = text;
    char *word = text + strlen(text) + 1;
    for (uint64_t i = 0; i < words; i++, word += strlen(word) + 1) {
        if (word >= text + size) die("bad request");
        if (i < request->argc) (*argv)[i] = word;
        else (*environment)[i - request->argc] = word;
    }
}

/* Called in the new process, which becomes the requested command. */
static _Noreturn void become_command(const struct request *request, const int *fds, int account) {
    char *cwd, **argv, **environment;
    for (int i = 0; i < 3; i++) dup2(fds[i], i);
    read_words(request, fds[3], &cwd, &argv, &environment);
    if (account >= 0) dup2(account, 3);
    /* The submission must not get the spawner's listener, nor another call's connection. */
    if (syscall(SYS_close_range, 4, INT_MAX, 0) != 0) /* gVisor reads the last number with its sign */
        for (int fd = 4; fd < 4 * MAX_CALLS; fd++) close(fd);
    setsid(); /* a signal to this call's group reaches no other call, and not the spawner */
    default_signals();
    umask(022); /* the modes of new files are the same for every evaluator */
    if (is_relayed) drop_privileges(call_uid, call_gid);
    restrict_calls();
    set_limit(RLIMIT_CORE, 0); /* a core file would use up the disk limit */
    set_limit(RLIMIT_NOFILE, MAX_FILES);
    set_limit(RLIMIT_DATA, limits.memory * MAPPED_FACTOR);
    if (limits.of_user > 0) set_limit(RLIMIT_NPROC, limits.of_user);
    set_limit(RLIMIT_FSIZE, limits.file_size);
    /* From here on others of the box may trace this process and make it do anything: it has no descriptor of the
     * spawner's but its own account, and the filter and the limits of every command. Otherwise its files in /proc are
     * root's. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (account >= 0) send_account(3);
    close(3);
    prefer_for_oom_kill();
    if (chdir(cwd) != 0) {
        fprintf(stderr, "slop-code: the subject has no folder %s: %s\n", cwd, strerror(errno));
        _exit(NOT_EXECUTABLE);
    }
    /* The spawner's own PATH leads to the submission's interpreter, whatever PATH the test gave to the call. */
    execvpe(argv[0], argv, environment);
    environ = environment;
    if (errno == ENOENT || errno == EACCES) execvp(argv[0], argv); /* EACCES: a folder of PATH cannot be searched */
    fprintf(stderr, "slop-code: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

static int receive_request(int fd, struct request *request, int *fds) {
    ssize_t got = receive_descriptors(fd, request, sizeof *request, fds, REQUEST_FDS);
    if (got < 0) return 0;
    if (got == sizeof *request && request->magic == MAGIC && request->argc > 0 && request->size > 0) return 1;
    for (int i = 0; i < REQUEST_FDS; i++) close(fds[i]);
    return 0;
}

/* Keeps the beginning of the command, for the record of a limit that strikes. */
static void read_text(struct call *call, int fd, uint32_t argc) {
    char words[4096 + CALL_TEXT];
    ssize_t got = pread(fd, words, sizeof words, 0);
    size_t length = got > 0 ? (size_t)got : 0, at = strnlen(words, length) + 1;
    for (uint32_t i = 0; i < argc && at < length && call->size < CALL_TEXT; i++) {
        size_t word = strnlen(words + at, length - at) + 1;
        if (word > CALL_TEXT - call->size) word = CALL_TEXT - call->size;
        if (word > length - at) word = length - at;
        memcpy(call->text + call->size, words + at, word);
        call->size += word, at += word;
    }
}

static void end_call(struct call *call, int status, enum limit limit) {
    struct reply reply = {status, limit};
    if (limit != NO_LIMIT) record_struck(limit, call->text, call->size);
    else if (killed_for_memory(status)) record_struck(limit_killed(limits.memory) ? MEMORY_LIMIT : OUT_OF_MEMORY, call->text, call->size);
    if (disk_was_filled() || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)) record_struck(DISK_LIMIT, call->text, call->size);
    send(call->fd, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(call->fd);
    *call = calls[--call_count];
}

/* Launchers are in another PID namespace, so they have no process number here. A client with a number is the
 * submission, which has nothing to ask for and could make the spawner wait. */
static int is_of_this_box(int fd) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != 0;
}

static void kill_over_limits(int at_once);
static void collect_children(void);

/* Kills and reaps until nothing is left in the box, as dying processes would count against the next call. One signal is
 * not enough: gVisor does not send it to a process that is being started at that moment. */
static void end_all_processes(enum limit limit) {
    int status;
    for (pid_t reaped; (reaped = reap_child(WNOHANG, &status)) >= 0;) {
        kill(-1, SIGKILL);
        if (reaped == 0) usleep(KILL_INTERVAL_US);
    }
    while (call_count > 0) end_call(&calls[0], SIGKILL, limit);
}

/* Handles a packet that is no call; returns 0 for a call, which stays to be received with its descriptors. */
static int handle_packet(int fd) {
    struct notice notice;
    ssize_t got = recv(fd, &notice, sizeof notice, MSG_PEEK);
    int asks = got == sizeof notice.magic && notice.magic == USAGE_MAGIC;
    int ends = got == sizeof notice.magic && notice.magic == END_MAGIC;
    int tells = got == sizeof notice && notice.magic == STRUCK_MAGIC && notice.struck.size <= CALL_TEXT;
    if (!asks && !ends && !tells) return 0;
    /* A connection that is closed with a packet unread loses its answer. */
    if (recv(fd, &notice, sizeof notice, 0) < 0) return 1;
    /* Processes over a limit that a call left behind are those of the test that ends now. */
    if (asks) kill_over_limits(1), answer_usage(fd);
    else if (ends) end_all_processes(NO_LIMIT);
    else record_struck(notice.struck.limit, notice.struck.call, notice.struck.size);
    return 1;
}

/* Returns -1 where the submission may have filled the box. It cannot have done so if it has no process here: the machine,
 * or a group around the box, has no room for one then, so the box ends, and there is no verdict. Several tries, as the
 * shortage may pass. Calls that have ended are collected first, as each is a process until then. Only for EAGAIN: a
 * submission can use up the memory of its own box. */
static pid_t fork_call(void) {
    for (int i = 0; i < FORK_TRIES; i++) {
        pid_t pid = fork();
        if (pid >= 0 || errno != EAGAIN) return pid;
        collect_children();
        if (kill(-1, 0) == 0) return pid;
        usleep(FORK_INTERVAL_US);
    }
    errno = EAGAIN;
    die("no room for a call on this machine, and its box is empty");
}

static void accept_call(int listener) {
    struct request request;
    int fds[REQUEST_FDS], fd = -1;
    char greeting;
    if (!is_relayed) fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    else if (receive_descriptors(listener, &greeting, 1, &fd, 1) != 1) return;
    if (fd < 0) return;
    if (listener_is_shared && is_of_this_box(fd)) {
        close(fd);
        return;
    }
    struct timeval timeout = {REQUEST_TIMEOUT_S, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (handle_packet(fd) || call_count == MAX_CALLS || !receive_request(fd, &request, fds)) {
        close(fd);
        return;
    }
    int account[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, account) != 0) account[0] = account[1] = -1;
    pid_t pid = fork_call();
    if (pid == 0) become_command(&request, fds, account[1]);
    if (account[1] >= 0) close(account[1]);
    if (pid > 0 && account[0] >= 0) keep_account(pid, account[0]);
    else if (account[0] >= 0) close(account[0]); /* nobody is reaped whose account it would be */
    calls[call_count++] = (struct call){.fd = fd, .pid = pid};
    read_text(&calls[call_count - 1], fds[3], request.argc);
    for (int i = 0; i < REQUEST_FDS; i++) close(fds[i]);
    count_calls(call_count);
    if (pid < 0) end_call(&calls[call_count - 1], FAILED << 8, PROCESS_LIMIT);
}

/* Passes on a signal. When the launcher has ended, kills the whole process group of the call: a test that kills the
 * entrypoint expects it to be dead. */
static void read_launcher(struct call *call) {
    int32_t number;
    ssize_t got = recv(call->fd, &number, sizeof number, MSG_DONTWAIT);
    if (got == sizeof number && number > 0 && number < NSIG) {
        kill(call->pid, number);
    } else if (got >= 0 || errno != EAGAIN) {
        kill(-call->pid, SIGKILL);
        kill(call->pid, SIGKILL);
        close(call->fd);
        *call = calls[--call_count];
    }
}

/* Whether calls that have ended left so many processes that the next call could hardly start any: what is left of a
 * program that was refused more. The kernel refuses them to ordinary users before the watch sees an excess. */
static int is_crowded(void) {
    if (kill(-1, 0) != 0) return 0; /* nothing was left, as a rule */
    rlim_t spare = limits.processes / 10 < MAX_SPARE ? limits.processes / 10 : MAX_SPARE;
    return measure_living().processes + spare >= limits.processes;
}

/* Reaps children that have ended: those of calls, and orphans of the box. */
static void collect_children(void) {
    int status;
    for (pid_t pid; (pid = reap_child(WNOHANG, &status)) > 0;)
        for (int i = 0; i < call_count; i++)
            if (calls[i].pid == pid) {
                int too_much = peak_exceeded(limits.memory);
                int too_many = !too_much && call_count == 1 && is_crowded();
                end_call(&calls[i], too_much ? SIGKILL : status, too_much ? MEMORY_LIMIT : too_many ? PROCESS_LIMIT : NO_LIMIT);
                if (too_many) end_all_processes(NO_LIMIT);
                break;
            }
}

/* Kills everything in the box over the memory limit or the process limit, as nobody can tell which of its processes is
 * to blame. The interval is taken from the clock, not from idle time, since a fork bomb keeps the loop busy. */
static void kill_over_limits(int at_once) {
    static struct timespec last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long elapsed = (now.tv_sec - last.tv_sec) * 1000 + (now.tv_nsec - last.tv_nsec) / 1000000;
    if (elapsed < WATCH_MS && !at_once) return;
    last = now;
    enum limit limit = exceeded_limit(limits.memory, limits.processes);
    if (call_count > 0 && disk_was_filled())
        for (int i = 0; i < call_count; i++) record_struck(DISK_LIMIT, calls[i].text, calls[i].size);
    if (limit == NO_LIMIT) return;
    if (call_count == 0) record_struck(limit, "", 0);
    end_all_processes(limit);
}

/* Returns the listener. `judge` becomes the connection that ends with the judge's box, if there is one. */
static int open_listener(const char *word, int *judge) {
    char greeting;
    int listener = atoi(word);
    if (word[0] != '/') return listener;
    errno = 0;
    if (getpid() != 1) die("not process 1: the submission could end this");
    listener_is_shared = 1;
    *judge = connect_to(word);
    if (*judge < 0) die("no answer from the judge's box");
    errno = 0;
    if (receive_descriptors(*judge, &greeting, 1, &listener, 1) != 1) die("the judge's box did not admit this one");
    return listener;
}

/* Returns the connection to the relay of the judge's box. */
static int connect_relay(char **words) {
    errno = 0;
    if (getpid() != 1) die("not process 1: the submission could end this");
    call_uid = atol(words[1]), call_gid = atol(words[2]);
    int connection = loopback_socket(words[0], 0);
    if (connection < 0) die("the judge's box cannot be reached through the loopback network");
    is_relayed = 1;
    return connection;
}

int serve_main(int argc, char **argv) {
    if (argc < 5) die("serve: at least five arguments expected");
    int judge = -1, listener, has_relay = strcmp(argv[0], "--relay") == 0 && argc >= 8;
    if (has_relay) listener = connect_relay(argv + 1), argv += 3;
    else listener = open_listener(argv[0], &judge);
    limits.memory = strtoull(argv[1], NULL, 10);
    limits.processes = strtoull(argv[2], NULL, 10);
    limits.file_size = strtoull(argv[3], NULL, 10);
    limits.of_user = strtoull(argv[4], NULL, 10);
    watch_folders(argv + 5);
    /* The submission runs as the same user: it must not trace this process or open its /proc/1/fd.
     * With these arguments the call cannot fail. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    int signals = open_signals((const int[]){SIGCHLD, 0});
    if (is_relayed) listener = start_relay_thread(listener); /* after the signals, which no thread may take */
    for (;;) {
        struct pollfd watched[MAX_CALLS + 3] = {{listener, POLLIN, 0}, {signals, POLLIN, 0}, {judge, POLLIN, 0}};
        int count = call_count;
        for (int i = 0; i < count; i++) watched[i + 3] = (struct pollfd){calls[i].fd, POLLIN, 0};
        int ready = poll(watched, (nfds_t)count + 3, WATCH_MS);
        if (ready < 0 && errno != EINTR) die("poll");
        if (ready > 0 && watched[2].revents) return 0;
        /* From the last to the first: read_launcher() may move the last call into a freed entry. */
        for (int i = count - 1; i >= 0 && ready > 0; i--)
            if (watched[i + 3].revents) read_launcher(&calls[i]);
        if (ready > 0 && watched[1].revents) {
            struct signalfd_siginfo information;
            while (read(signals, &information, sizeof information) > 0) {}
            collect_children();
        }
        if (ready > 0 && watched[0].revents) accept_call(listener);
        kill_over_limits(0);
    }
}
