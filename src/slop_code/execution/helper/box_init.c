/* init STEP... --judge WORD...
 *
 * Makes the mounts and the socket that the boxes share, starts the judge, and ends with it. Under bubblewrap it runs
 * inside the outer box and starts the subject's box itself. Under Docker it is process 1 of the judge's container and
 * admits the subject's container.
 * Steps are taken in their order:
 *   --mkdir PATH MODE           --tmpfs PATH OPTIONS        --overlay LOWERS UPPER WORK TARGET
 *   --bind SOURCE TARGET ro|rw  --chown PATH UID GID        --copy SOURCE TARGET UID GID
 *   --proc PATH                 a /proc of this box's own processes
 *   --workspace LOWERS SCRATCH TARGET MAX_BYTES
 *                               an overlay with its changes in a tmpfs, or a copy of at most so many bytes where that
 *                               does not work
 *   --tree NAME PATH            folder for the members of an archive below NAME
 *   --unpack UID GID            unpack a tar archive from stdin
 *   --command PROGRAM FOLDER    make a program a command in the default path, through a link in the new folder
 *   --cgroup FILE               `cgroup.procs` of a control group that the subject's box enters
 *   --listen SOCKET             socket that launchers connect to
 *   --relay PORT                the subject's box has another kernel; its `serve` connects to this port of the loopback
 *   --subject N WORD{N}         start the subject's box, with the listener as its descriptor 3
 *   --judge-fd N                the judge inherits this descriptor of our caller, and nothing else does
 *   --ready                     write the tally of --copy to stdout; from now on the end of stdin means stop
 *   --forward-stdin             forward stdin to the judge, up to a byte 4, which ends the input of a terminal, too
 *   --admit SECONDS             send the listener to the first client, which is `serve` of the other container; with
 *                               --relay, start the relay for it
 *   --send NAME PATH            send a folder to stdout, in a tar archive, after the judge's end
 *   --hold                      start no judge, and stay until stdin ends
 * The command of the subject's box and of the judge is a program, or the word `box` and the options of that mode.
 */
#include "privileged.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CGROUPS 8
#define MAX_FOLDERS 16
#define END_OF_INPUT 4
#define LISTENER_FD 3
#define NOBODY "65534"
#define OOM_SCORE "500" /* calls have 1000, and the spawner has 0 */

static char *cgroups[MAX_CGROUPS], **sent_folders[MAX_FOLDERS];
static int cgroup_count, folder_count, listener = -1, loopback = -1, spawner = -1, is_ready, judge_fd = -1;
static int judge_stdin[2] = {-1, -1}, forwards_stdin; /* a pipe that the judge reads, open until its input has ended */
static pid_t subject = -1;

static const char NO_SHARED_LOOPBACK[] =
    ", or does not share the loopback network of the judge's box: docker.runtime has a kernel of its own, and has to use "
    "the network of its container, as runsc does with --network=host";

static int listen_on(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) die("no socket");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 512) != 0) die("cannot listen on %s", path);
    /* Launchers run as the boxes' user, and so does the submission: the spawner tells them apart. */
    if (chmod(path, 0666) != 0) die("cannot open up %s", path);
    return fd;
}

static void open_loopback(const char *port) {
    loopback = loopback_socket(port, 1);
    if (loopback < 0) die("cannot listen on port %s", port);
}

/* The relay has neither a privilege, nor the judge's user, nor stdin and stdout of this process. */
static void start_relay(int connection) {
    char words[2][16];
    subject = fork();
    if (subject < 0) die("cannot fork");
    if (subject > 0) return;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    default_signals();
    for (int fd = 0; fd < 2; fd++) dup2(null, fd);
    fcntl(listener, F_SETFD, 0), fcntl(connection, F_SETFD, 0);
    snprintf(words[0], sizeof words[0], "%d", listener), snprintf(words[1], sizeof words[1], "%d", connection);
    execl("/proc/self/exe", "slopbox", "restrict", "0", "0", "--user", NOBODY, NOBODY, "--", "/proc/self/exe", "relay", words[0],
          words[1], NULL);
    die("cannot run the relay");
}

/* The spawner of the subject's container starts before anything of the submission, so it is the first client. From
 * then on launchers connect to the spawner or the relay, and this process takes no part in calls. */
static void admit_spawner(const char *seconds) {
    errno = 0;
    if (getpid() != 1) die("not process 1: whoever else is here could end this or change what it sends");
    int has_relay = loopback >= 0, entrance = has_relay ? loopback : listener;
    struct pollfd watched[2] = {{entrance, POLLIN, 0}, {STDIN_FILENO, forwards_stdin ? 0 : POLLIN, 0}};
    errno = 0;
    if (poll(watched, 2, atoi(seconds) * 1000) <= 0)
        die("the subject's box did not start within %s s%s", seconds, has_relay ? NO_SHARED_LOOPBACK : "");
    if (watched[1].revents) die("nobody waits for this any more");
    spawner = accept4(entrance, NULL, NULL, SOCK_CLOEXEC);
    if (spawner < 0 || (!has_relay && send_descriptors(spawner, "", 1, &listener, 1) != 0)) die("cannot admit the subject's box");
    if (has_relay) {
        start_relay(spawner);
        close(spawner), close(loopback);
        spawner = loopback = -1;
    }
    close(listener);
    listener = -1;
}

/* In a container the judge gets neither stdin nor stdout of this process: reports are sent there, and a test that
 * prints must not be able to forge them. The judge's output goes to stderr. */
static pid_t start(char **words, int is_subject) {
    pid_t pid = fork();
    if (pid < 0) die("cannot fork");
    if (pid > 0) return pid;
    default_signals();
    leave_keyrings();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (is_subject) {
        for (int fd = 0; fd < 2; fd++) dup2(null, fd);
        if (listener == LISTENER_FD) fcntl(LISTENER_FD, F_SETFD, 0);
        else dup2(listener, LISTENER_FD);
        /* Joined before the box exists, so that nothing in it ever runs outside of its limits. */
        join_cgroups(cgroups, cgroup_count);
    } else {
        if (judge_fd >= 0) fcntl(judge_fd, F_SETFD, 0);
        if (is_ready) {
            dup2(forwards_stdin ? judge_stdin[0] : null, 0);
            dup2(2, 1);
        }
    }
    if (strcmp(words[0], "box") == 0) exit(run_box(words + 1, is_subject ? OOM_SCORE : NULL));
    execv(words[0], words);
    die("cannot run %s", words[0]);
}

static void say_ready(void) {
    is_ready = 1;
    dprintf(STDOUT_FILENO, "ready %llu %llu %llu\n", copied.entries, copied.bytes, copied.checksum);
}

/* Whoever holds it decides the judge's exit status: with the flag, the subject's box does not inherit it. */
static void reserve_judge_fd(const char *word) {
    judge_fd = atoi(word);
    if (judge_fd <= LISTENER_FD || fcntl(judge_fd, F_SETFD, FD_CLOEXEC) != 0) die("no descriptor %s for the judge", word);
}

static void open_judge_stdin(void) {
    if (pipe2(judge_stdin, O_CLOEXEC) != 0) die("no pipe");
    forwards_stdin = 1;
}

static int start_subject(char **words, int left) {
    int count = atoi(words[0]);
    errno = 0;
    if (count < 1 || count > left - 1) die("init: --subject %d", count);
    char **box = calloc((size_t)count + 1, sizeof *box);
    if (!box) die("no memory");
    memcpy(box, words + 1, (size_t)count * sizeof *box);
    subject = start(box, 1);
    return 1 + count;
}

/* As mount_step, for the steps that start and connect the boxes. */
static int box_step(const char *name, char **words, int left) {
    if (strcmp(name, "--cgroup") == 0 && left >= 1 && cgroup_count < MAX_CGROUPS) return cgroups[cgroup_count++] = words[0], 1;
    if (strcmp(name, "--send") == 0 && left >= 2 && folder_count < MAX_FOLDERS) return sent_folders[folder_count++] = words, 2;
    if (strcmp(name, "--listen") == 0 && left >= 1) return listener = listen_on(words[0]), 1;
    if (strcmp(name, "--relay") == 0 && left >= 1) return open_loopback(words[0]), 1;
    if (strcmp(name, "--admit") == 0 && left >= 1) return admit_spawner(words[0]), 1;
    if (strcmp(name, "--judge-fd") == 0 && left >= 1) return reserve_judge_fd(words[0]), 1;
    if (strcmp(name, "--ready") == 0) return say_ready(), 0;
    if (strcmp(name, "--forward-stdin") == 0) return open_judge_stdin(), 0;
    if (strcmp(name, "--subject") == 0 && left >= 2) return start_subject(words, left);
    return -1;
}

/* Whether the judge's pipe has room for at least a page. As both ends are open here, writing that much neither blocks
 * nor fails. */
static int has_room(void) {
    struct pollfd room = {judge_stdin[1], POLLOUT, 0};
    return judge_stdin[1] < 0 || poll(&room, 1, 0) > 0;
}

/* Returns 0 when stdin itself has ended. */
static int forward_stdin(void) {
    char text[4096];
    ssize_t size = read(STDIN_FILENO, text, sizeof text);
    if (size <= 0) return size < 0 && errno == EINTR;
    char *end = memchr(text, END_OF_INPUT, (size_t)size);
    size_t length = end ? (size_t)(end - text) : (size_t)size;
    if (judge_stdin[1] < 0) return 1;
    if (length > 0 && write(judge_stdin[1], text, length) < 0) die("cannot write to the judge");
    if (!end) return 1;
    for (int i = 0; i < 2; i++) close(judge_stdin[i]), judge_stdin[i] = -1;
    return 1;
}

/* Returns the judge's status, or a status for the reason to end it: without the evaluator (stdin has ended) or without
 * the subject's box, the tests cannot lead to a verdict. */
static int wait_for_end(pid_t judge, int signals) {
    for (;;) {
        int room = !forwards_stdin || has_room();
        struct pollfd watched[4] = {
            {signals, POLLIN, 0},
            {is_ready ? STDIN_FILENO : -1, room ? POLLIN : 0, 0},
            {spawner, POLLIN, 0},
            {room ? -1 : judge_stdin[1], POLLOUT, 0},
        };
        if (poll(watched, 4, -1) < 0 && errno != EINTR) die("cannot wait for the boxes");
        struct signalfd_siginfo information;
        int stop_requested = 0, status;
        while (read(signals, &information, sizeof information) > 0) stop_requested |= information.ssi_signo == SIGTERM;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid == judge) return status;
            if (pid == subject) {
                fprintf(stderr, "slop-code: the subject's box ended before the tests (status %d)\n", status_to_exit(status));
                return SUBJECT_BOX_ENDED << 8;
            }
        }
        if (forwards_stdin && watched[1].revents & POLLIN && forward_stdin()) watched[1].revents = 0;
        if (stop_requested || watched[1].revents) return judge > 0 ? SIGKILL : 0;
        if (watched[2].revents) {
            fputs("slop-code: the subject's box ended before the tests\n", stderr);
            return SUBJECT_BOX_ENDED << 8;
        }
    }
}

/* Folders are sent when every other process of the container is gone, so that no process can change them. */
static void send_folders(pid_t judge, int status) {
    if (getpid() == 1) kill(-1, SIGKILL);
    else kill(judge, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {}
    for (int i = 0; i < folder_count; i++) pack(STDOUT_FILENO, sent_folders[i][0], sent_folders[i][1]);
    pack_end(STDOUT_FILENO, status);
}

int init_main(int argc, char **argv) {
    int i = 0, hold = 0, signals = open_signals((const int[]){SIGCHLD, SIGTERM, 0});
    umask(022); /* mount points and folders are readable for the boxes' users, whatever the daemon's umask is */
    for (; i < argc && strcmp(argv[i], "--judge") != 0; i++) {
        int left = argc - i - 1, took = mount_step(argv[i], argv + i + 1, left);
        if (took < 0) took = box_step(argv[i], argv + i + 1, left);
        if (took < 0 && strcmp(argv[i], "--hold") == 0) took = 0, hold = 1;
        errno = 0;
        if (took < 0) die("init: %s does not fit here", argv[i]);
        i += took;
    }
    if (!hold && i + 1 >= argc) die("init: no judge");
    if (hold) return status_to_exit(wait_for_end(-1, signals));
    pid_t judge = start(argv + i + 1, 0);
    /* Only the spawner may answer launchers, and only the judge may hold its descriptor. */
    if (listener >= 0) close(listener);
    if (judge_fd >= 0) close(judge_fd);
    int status = wait_for_end(judge, signals);
    if (is_ready) send_folders(judge, status);
    return status_to_exit(status);
}
