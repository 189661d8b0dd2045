/* serve LISTENER MEMORY PROCESSES FILESIZE NPROC
 *
 * LISTENER is a descriptor, or the path of the socket over which `pair --admit` hands it out. NPROC bounds the processes
 * of the user as a whole, so it is 0 where the user is not the box's alone.
 * Process 1 of the subject's box. Nothing in the box can kill it; it starts what launchers ask
 * for, passes signals on, ends a call's process group when its launcher is gone, and ends
 * everything in the box when that takes more memory or processes than it may. */
#include "slopbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#define MOST_CALLS 1024
#define WATCH_MS 50

struct call {
    int fd;
    pid_t pid;
};

static struct call calls[MOST_CALLS];
static int call_count;
static int shared; /* whether the submission, too, can reach the listener */
static struct { rlim_t memory, processes, file_size, of_user; } limits;

static void bound(int resource, rlim_t value) {
    struct rlimit limit = {value, value};
    setrlimit(resource, &limit);
}

/* Raising one's own score needs no privilege: the box's processes go before its supervisor. */
static void go_first_when_memory_ends(void) {
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else the file is not its own */
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd >= 0 && write(fd, "1000", 4) < 0) {}
    if (fd >= 0) close(fd);
}

static _Noreturn void become(const struct request *request, const int *fds) {
    uint64_t size = request->size, words = (uint64_t)request->argc + request->envc;
    struct stat information;
    for (int i = 0; i < 3; i++) dup2(fds[i], i);
    int is_whole = fstat(fds[3], &information) == 0 && information.st_size >= (off_t)size && words < size;
    char *text = is_whole ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fds[3], 0) : MAP_FAILED;
    errno = 0;
    if (text == MAP_FAILED || text[size - 1] != 0) die("bad request");
    char **argv = calloc(request->argc + 1ul, sizeof *argv), **environment = calloc(request->envc + 1ul, sizeof *environment);
    if (!argv || !environment) die("no memory for the call");
    const char *cwd = text, *end = text + size;
    char *word = text + strlen(text) + 1;
    for (uint64_t i = 0; i < words; i++, word += strlen(word) + 1) {
        if (word >= end) die("bad request");
        if (i < request->argc) argv[i] = word;
        else environment[i - request->argc] = word;
    }
    /* Before this process can be looked into by others of the box, it lets go of serve's descriptors. */
    if (syscall(SYS_close_range, 3, ~0U, 0) != 0)
        for (int fd = 3; fd < 3 * MOST_CALLS; fd++) close(fd);
    setsid();
    default_signals();
    umask(022);
    restrict_calls();
    go_first_when_memory_ends();
    bound(RLIMIT_CORE, 0);
    bound(RLIMIT_DATA, limits.memory);
    if (limits.of_user > 0) bound(RLIMIT_NPROC, limits.of_user);
    bound(RLIMIT_FSIZE, limits.file_size);
    if (chdir(cwd) != 0) {
        fprintf(stderr, "slop-code: the subject has no folder %s: %s\n", cwd, strerror(errno));
        _exit(NOT_EXECUTABLE);
    }
    environ = environment;
    execvp(argv[0], argv);
    fprintf(stderr, "slop-code: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

static int receive(int fd, struct request *request, int *fds) {
    ssize_t got = receive_descriptors(fd, request, sizeof *request, fds, REQUEST_FDS);
    if (got < 0) return 0;
    if (got == sizeof *request && request->magic == MAGIC && request->argc > 0 && request->size > 0) return 1;
    for (int i = 0; i < REQUEST_FDS; i++) close(fds[i]);
    return 0;
}

static void finish(struct call *call, int status, enum reason reason) {
    struct reply reply = {status, reason};
    send(call->fd, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(call->fd);
    *call = calls[--call_count];
}

/* Whoever has a number here is of this box: the submission, which has nothing to ask for and could make this wait. */
static int is_of_this_box(int fd) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != 0;
}

static void accept_call(int listener) {
    struct request request;
    int fds[REQUEST_FDS], fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    if (shared && is_of_this_box(fd)) {
        close(fd);
        return;
    }
    struct timeval patience = {5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (call_count == MOST_CALLS || !receive(fd, &request, fds)) {
        close(fd);
        return;
    }
    pid_t pid = fork();
    if (pid == 0) become(&request, fds);
    for (int i = 0; i < REQUEST_FDS; i++) close(fds[i]);
    calls[call_count++] = (struct call){fd, pid};
    if (pid < 0) finish(&calls[call_count - 1], FAILED << 8, TOO_MANY_PROCESSES);
}

/* A signal to pass on, or the launcher's end, which is the end of the whole group. */
static void hear(struct call *call) {
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

static void bury(void) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (int i = 0; i < call_count; i++)
            if (calls[i].pid == pid) {
                finish(&calls[i], status, ENDED_ITSELF);
                break;
            }
}

/* Memory files that a process holds open, written to and mapped by nobody. */
static rlim_t memory_files_of(const char *pid) {
    char path[600], target[64];
    rlim_t total = 0;
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat information;
        snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target);
        if (length > 7 && strncmp(target, "/memfd:", 7) == 0 && stat(path, &information) == 0)
            total += (rlim_t)information.st_blocks * 512;
    }
    if (folder) closedir(folder);
    return total;
}

/* Segments of System V shared memory in this box, attached or not. */
static rlim_t shared_segments(void) {
    char line[512];
    rlim_t total = 0;
    unsigned long long bytes;
    FILE *file = fopen("/proc/sysvipc/shm", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%*d %*d %*o %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &bytes) == 1) total += bytes;
    if (file) fclose(file);
    return total;
}

/* Memory in bytes that is the process's alone or shared memory, from /proc/PID/status. A thread counts as a process,
 * as it does for the kernel. */
static rlim_t memory_of(const char *pid, rlim_t *threads) {
    char path[300], line[256];
    rlim_t total = 0;
    unsigned long long number;
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %llu", &number) == 1 || sscanf(line, "RssShmem: %llu", &number) == 1) total += number << 10;
        else if (sscanf(line, "Threads: %llu", &number) == 1) *threads += number;
    fclose(file);
    return total;
}

static enum reason over_limit(void) {
    DIR *folder = opendir("/proc");
    rlim_t memory = shared_segments(), processes = 0;
    if (!folder) return ENDED_ITSELF;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || strcmp(entry->d_name, "1") == 0) continue;
        memory += memory_of(entry->d_name, &processes) + memory_files_of(entry->d_name);
    }
    closedir(folder);
    if (processes > limits.processes) return TOO_MANY_PROCESSES;
    return memory > limits.memory ? TOO_MUCH_MEMORY : ENDED_ITSELF;
}

/* By the clock and not by idleness: a fork bomb keeps the loop busy. */
static void watch(void) {
    static struct timespec last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long elapsed = (now.tv_sec - last.tv_sec) * 1000 + (now.tv_nsec - last.tv_nsec) / 1000000;
    if (elapsed < WATCH_MS) return;
    last = now;
    enum reason reason = over_limit();
    if (reason == ENDED_ITSELF) return;
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {} /* the dying would count against the next call */
    while (call_count > 0) finish(&calls[0], SIGKILL, reason);
}

/* The listener; `judge` is the connection that ends when the judge's side does, where there is one. */
static int listener_from(const char *word, int *judge) {
    char greeting;
    int listener = atoi(word);
    if (word[0] != '/') return listener;
    errno = 0;
    if (getpid() != 1) die("not process 1: the submission could end this");
    shared = 1;
    *judge = connect_to(word);
    if (*judge < 0) die("no answer from the judge's box");
    errno = 0;
    if (receive_descriptors(*judge, &greeting, 1, &listener, 1) != 1) die("the judge's box did not admit this one");
    return listener;
}

int serve_main(int argc, char **argv) {
    if (argc != 5) die("serve: five arguments expected");
    int judge = -1, listener = listener_from(argv[0], &judge);
    limits.memory = strtoull(argv[1], NULL, 10);
    limits.processes = strtoull(argv[2], NULL, 10);
    limits.file_size = strtoull(argv[3], NULL, 10);
    limits.of_user = strtoull(argv[4], NULL, 10);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    int signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) die("no signalfd");
    for (;;) {
        struct pollfd watched[MOST_CALLS + 3] = {{listener, POLLIN, 0}, {signals, POLLIN, 0}, {judge, POLLIN, 0}};
        int count = call_count;
        for (int i = 0; i < count; i++) watched[i + 3] = (struct pollfd){calls[i].fd, POLLIN, 0};
        int ready = poll(watched, (nfds_t)count + 3, WATCH_MS);
        if (ready < 0 && errno != EINTR) die("poll");
        if (ready > 0 && watched[2].revents) return 0;
        /* From the last to the first: hear() may move the last call into a freed place. */
        for (int i = count - 1; i >= 0 && ready > 0; i--)
            if (watched[i + 3].revents) hear(&calls[i]);
        if (ready > 0 && watched[1].revents) {
            struct signalfd_siginfo information;
            while (read(signals, &information, sizeof information) > 0) {}
            bury();
        }
        if (ready > 0 && watched[0].revents) accept_call(listener);
        watch();
    }
}
