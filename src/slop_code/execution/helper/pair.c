/* pair STEP... [--judge WORD...]
 *
 * Makes what the boxes share and ends with the judge. Under bubblewrap it runs inside the outer box and starts
 * the subject's box itself; in a container it is process 1 of the judge's and admits the subject's container.
 *   --mkdir PATH MODE           --tmpfs PATH OPTIONS        --overlay LOWERS UPPER WORK TARGET
 *   --bind SOURCE TARGET ro|rw  --own PATH UID GID          --copy SOURCE TARGET UID GID
 *   --tree NAME PATH            where members below NAME are unpacked
 *   --unpack UID GID            a tar archive from stdin
 *   --join FILE                 a control group's `cgroup.procs` that the subject's box enters
 *   --listen SOCKET             where launchers will ask
 *   --subject N WORD{N}         start the subject's box, the listener is its descriptor 3
 *   --ready                     say so on stdout, with the tally of --copy; from now on the end of stdin means stop
 *   --talk                      what comes on stdin is for the judge to read, up to a byte 4, as terminals end it
 *   --admit SECONDS             the first to connect is `serve` of the other container: it gets the listener
 *   --give NAME PATH            a folder that is sent to stdout in a tar archive after the judge's end
 *   --hold                      no judge: stay until stdin ends
 */
#include "slopbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_GROUPS 8
#define MOST_GIVEN 16
#define END_OF_TALK 4

static char *groups[MOST_GROUPS], **given[MOST_GIVEN];
static int group_count, given_count, listener = -1, admitted = -1, ready;
static int heard[2] = {-1, -1}, talking; /* what the judge reads, as long as somebody talks to it */
static pid_t subject = -1;

static void mount_overlay(char **words) {
    char options[16384];
    int length = snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", words[0], words[1], words[2]);
    if (length >= (int)sizeof options) die("overlay options too long");
    if (mount("overlay", words[3], "overlay", MS_NOSUID | MS_NODEV, options) == 0) return;
    options[length - (int)strlen(",userxattr")] = 0; /* before Linux 5.11 there is no such option, and root needs none */
    if (mount("overlay", words[3], "overlay", MS_NOSUID | MS_NODEV, options) != 0) die("cannot mount the overlay on %s", words[3]);
}

static void mount_bind(char **words) {
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | (strcmp(words[2], "ro") == 0 ? MS_RDONLY : 0);
    if (mount(words[0], words[1], NULL, MS_BIND, NULL) != 0) die("cannot mount %s", words[1]);
    if (mount(NULL, words[1], NULL, flags, NULL) != 0) die("cannot close %s", words[1]);
}

static int listen_on(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) die("no socket");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 512) != 0) die("cannot listen on %s", path);
    if (chmod(path, 0666) != 0) die("cannot open up %s", path);
    return fd;
}

static void admit(const char *seconds) {
    errno = 0;
    if (getpid() != 1) die("not process 1: whoever else is here could end this or change what it sends");
    struct pollfd watched[2] = {{listener, POLLIN, 0}, {STDIN_FILENO, talking ? 0 : POLLIN, 0}};
    errno = 0;
    if (poll(watched, 2, atoi(seconds) * 1000) <= 0) die("the subject's box did not start within %s s", seconds);
    if (watched[1].revents) die("nobody waits for this any more");
    admitted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (admitted < 0 || send_descriptors(admitted, "", 1, &listener, 1) != 0) die("cannot admit the subject's box");
    close(listener);
    listener = -1;
}

void join_groups(char **files, int count) {
    for (int i = 0; i < count; i++) {
        int fd = open(files[i], O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1) die("cannot enter the control group %s", files[i]);
        close(fd);
    }
}

/* The judge of a container leaves stdin and stdout to us: what it prints goes to stderr. */
static pid_t start(char **words, int is_subject) {
    pid_t pid = fork();
    if (pid < 0) die("cannot fork");
    if (pid > 0) return pid;
    default_signals();
    leave_keyrings();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (is_subject) {
        for (int fd = 0; fd < 2; fd++) dup2(null, fd);
        if (listener == 3) fcntl(3, F_SETFD, 0);
        else dup2(listener, 3);
        join_groups(groups, group_count);
    } else if (ready) {
        dup2(talking ? heard[0] : null, 0);
        dup2(2, 1);
    }
    execv(words[0], words);
    die("cannot run %s", words[0]);
}

/* `words` follow a step's name, `left` of them; how many it took, -1 when it is none of these. */
static int mount_step(const char *name, char **words, int left) {
    if (strcmp(name, "--mkdir") == 0 && left >= 2) {
        make_folders(words[0], 0755);
        if (chmod(words[0], (mode_t)strtoul(words[1], NULL, 8)) != 0) die("cannot set the mode of %s", words[0]);
        return 2;
    }
    if (strcmp(name, "--tmpfs") == 0 && left >= 2) {
        make_folders(words[0], 0755);
        if (mount("tmpfs", words[0], "tmpfs", MS_NOSUID | MS_NODEV, words[1]) != 0) die("cannot mount %s", words[0]);
        return 2;
    }
    if (strcmp(name, "--overlay") == 0 && left >= 4) return mount_overlay(words), 4;
    if (strcmp(name, "--bind") == 0 && left >= 3) return mount_bind(words), 3;
    if (strcmp(name, "--own") == 0 && left >= 3) {
        if (chown(words[0], (uid_t)atol(words[1]), (gid_t)atol(words[2])) != 0) die("cannot give away %s", words[0]);
        return 3;
    }
    if (strcmp(name, "--copy") == 0 && left >= 4)
        return copy_tree(words[0], words[1], (uid_t)atol(words[2]), (gid_t)atol(words[3])), 4;
    if (strcmp(name, "--tree") == 0 && left >= 2) return add_tree(words[0], words[1]), 2;
    if (strcmp(name, "--unpack") == 0 && left >= 2) return unpack(STDIN_FILENO, (uid_t)atol(words[0]), (gid_t)atol(words[1])), 2;
    return -1;
}

static void say_ready(void) {
    ready = 1;
    dprintf(STDOUT_FILENO, "ready %llu %llu %llu\n", copied.entries, copied.bytes, copied.checksum);
}

static void start_talk(void) {
    if (pipe2(heard, O_CLOEXEC) != 0) die("no pipe");
    talking = 1;
}

static int box_step(const char *name, char **words, int left) {
    if (strcmp(name, "--join") == 0 && left >= 1 && group_count < MOST_GROUPS) return groups[group_count++] = words[0], 1;
    if (strcmp(name, "--give") == 0 && left >= 2 && given_count < MOST_GIVEN) return given[given_count++] = words, 2;
    if (strcmp(name, "--listen") == 0 && left >= 1) return listener = listen_on(words[0]), 1;
    if (strcmp(name, "--admit") == 0 && left >= 1) return admit(words[0]), 1;
    if (strcmp(name, "--ready") == 0) return say_ready(), 0;
    if (strcmp(name, "--talk") == 0) return start_talk(), 0;
    if (strcmp(name, "--subject") == 0 && left >= 2) {
        int count = atoi(words[0]);
        char **box = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof *box);
        if (count < 1 || count > left - 1 || !box) die("pair: --subject %d", count);
        memcpy(box, words + 1, (size_t)count * sizeof *box);
        subject = start(box, 1);
        return 1 + count;
    }
    return -1;
}

/* A page at least: as we keep both ends, writing that much neither waits nor fails. */
static int has_room(void) {
    struct pollfd room = {heard[1], POLLOUT, 0};
    return heard[1] < 0 || poll(&room, 1, 0) > 0;
}

/* Whether there is more to come. */
static int pass_on(void) {
    char text[4096];
    ssize_t size = read(STDIN_FILENO, text, sizeof text);
    if (size <= 0) return size < 0 && errno == EINTR;
    char *end = memchr(text, END_OF_TALK, (size_t)size);
    size_t said = end ? (size_t)(end - text) : (size_t)size;
    if (heard[1] < 0) return 1;
    if (said > 0 && write(heard[1], text, said) < 0) die("cannot talk to the judge");
    if (!end) return 1;
    for (int i = 0; i < 2; i++) close(heard[i]), heard[i] = -1;
    return 1;
}

/* Until the judge ends, or there is a reason to end it. */
static int wait_for(pid_t judge, int signals) {
    for (;;) {
        int room = !talking || has_room();
        struct pollfd watched[4] = {
            {signals, POLLIN, 0},
            {ready ? STDIN_FILENO : -1, room ? POLLIN : 0, 0},
            {admitted, POLLIN, 0},
            {room ? -1 : heard[1], POLLOUT, 0},
        };
        if (poll(watched, 4, -1) < 0 && errno != EINTR) die("lost the boxes");
        struct signalfd_siginfo information;
        int told_to_stop = 0, status;
        while (read(signals, &information, sizeof information) > 0) told_to_stop |= information.ssi_signo == SIGTERM;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid == judge) return status;
            if (pid == subject) {
                fprintf(stderr, "slop-code: the subject's box ended before the tests (status %d)\n", status_to_exit(status));
                return SUBJECT_BOX_ENDED << 8;
            }
        }
        if (talking && watched[1].revents & POLLIN && pass_on()) watched[1].revents = 0;
        if (told_to_stop || watched[1].revents) return judge > 0 ? SIGKILL : 0;
        if (watched[2].revents) {
            fputs("slop-code: the subject's box ended before the tests\n", stderr);
            return SUBJECT_BOX_ENDED << 8;
        }
    }
}

/* In a container: nobody is left who could change what is sent. */
static void give_back(pid_t judge, int status) {
    if (getpid() == 1) kill(-1, SIGKILL);
    else kill(judge, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {}
    for (int i = 0; i < given_count; i++) pack(STDOUT_FILENO, given[i][0], given[i][1]);
    pack_end(STDOUT_FILENO, status);
}

int pair_main(int argc, char **argv) {
    int i = 0, hold = 0;
    sigset_t watched;
    umask(022);
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) die("no signalfd");
    for (; i < argc && strcmp(argv[i], "--judge") != 0; i++) {
        int left = argc - i - 1, took = mount_step(argv[i], argv + i + 1, left);
        if (took < 0) took = box_step(argv[i], argv + i + 1, left);
        if (took < 0 && strcmp(argv[i], "--hold") == 0) took = 0, hold = 1;
        errno = 0;
        if (took < 0) die("pair: %s does not fit here", argv[i]);
        i += took;
    }
    if (!hold && i + 1 >= argc) die("pair: no judge");
    if (hold) return status_to_exit(wait_for(-1, signals));
    pid_t judge = start(argv + i + 1, 0);
    if (listener >= 0) close(listener);
    int status = wait_for(judge, signals);
    if (ready) give_back(judge, status);
    return status_to_exit(status);
}
