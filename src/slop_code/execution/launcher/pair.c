/* pair STEP... --listen SOCKET --subject N WORD{N} --judge WORD...
 *
 * Runs inside the outer box: mounts what both boxes share, starts the subject's box with the
 * listening socket as descriptor 3, then the judge's, and ends with the judge.
 * STEP is `--mkdir PATH MODE`, `--tmpfs PATH OPTIONS`, `--overlay LOWERS UPPER WORK TARGET` or `--join FILE`, the last one
 * naming a control group's `cgroup.procs` that the subject's box enters. */
#include "slopbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_GROUPS 8

static void mount_overlay(char **words) {
    char options[16384];
    int length = snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", words[0], words[1], words[2]);
    if (length >= (int)sizeof options) die("overlay options too long");
    if (mount("overlay", words[3], "overlay", MS_NOSUID | MS_NODEV, options) != 0) die("cannot mount the overlay on %s", words[3]);
}

static int listen_on(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (fd < 0) die("no socket");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 512) != 0) die("cannot listen on %s", path);
    return fd;
}

void join_groups(char **files, int count) {
    for (int i = 0; i < count; i++) {
        int fd = open(files[i], O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1) die("cannot enter the control group %s", files[i]);
        close(fd);
    }
}

static pid_t start(char **words, int descriptor, char **groups, int group_count) {
    pid_t pid = fork();
    if (pid < 0) die("cannot fork");
    if (pid > 0) return pid;
    leave_keyrings();
    if (descriptor >= 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 0; fd < 2; fd++) dup2(null, fd);
        if (descriptor != 3) dup2(descriptor, 3);
        join_groups(groups, group_count);
    }
    execv(words[0], words);
    die("cannot run %s", words[0]);
}

int pair_main(int argc, char **argv) {
    char *groups[MOST_GROUPS];
    int group_count = 0, listener = -1, i = 0;
    pid_t subject = -1;
    umask(022);
    for (; i < argc; i++) {
        int left = argc - i - 1;
        if (strcmp(argv[i], "--mkdir") == 0 && left >= 2) {
            make_folders(argv[i + 1], 0755);
            chmod(argv[i + 1], (mode_t)strtoul(argv[i + 2], NULL, 8));
            i += 2;
        } else if (strcmp(argv[i], "--tmpfs") == 0 && left >= 2) {
            make_folders(argv[i + 1], 0755);
            if (mount("tmpfs", argv[i + 1], "tmpfs", MS_NOSUID | MS_NODEV, argv[i + 2]) != 0) die("cannot mount %s", argv[i + 1]);
            i += 2;
        } else if (strcmp(argv[i], "--overlay") == 0 && left >= 4) {
            mount_overlay(argv + i + 1);
            i += 4;
        } else if (strcmp(argv[i], "--join") == 0 && left >= 1 && group_count < MOST_GROUPS) {
            groups[group_count++] = argv[++i];
        } else if (strcmp(argv[i], "--listen") == 0 && left >= 1) {
            listener = listen_on(argv[++i]);
        } else if (strcmp(argv[i], "--subject") == 0 && left >= 2) {
            int count = atoi(argv[i + 1]);
            char **words = calloc((size_t)count + 1, sizeof *words);
            if (count < 1 || count > left - 1 || !words) die("pair: --subject %d", count);
            memcpy(words, argv + i + 2, (size_t)count * sizeof *words);
            subject = start(words, listener, groups, group_count);
            i += 1 + count;
        } else if (strcmp(argv[i], "--judge") == 0 && left >= 1) {
            break;
        } else {
            errno = 0;
            die("pair: %s does not fit here", argv[i]);
        }
    }
    if (i >= argc || subject < 0) die("pair: no boxes");
    if (listener >= 0) close(listener);
    pid_t judge = start(argv + i + 1, -1, NULL, 0);
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid == judge) return status_to_exit(status);
        if (pid == subject) {
            fprintf(stderr, "slop-code: the subject's box ended before the tests (status %d)\n", status_to_exit(status));
            return SUBJECT_BOX_ENDED;
        }
        if (pid < 0 && errno != EINTR) die("lost the boxes");
    }
}
