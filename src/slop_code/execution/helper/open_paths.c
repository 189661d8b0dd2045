/* open-paths [--as ID] [--cover FOLDER]... [--map] PATH... -- COMMAND
 *
 * Runs a command of the host's root in a mount namespace in which the paths can be reached without root's privileges:
 * each FOLDER, which is closed, is covered by an empty one that is open, and has only those of the paths that are in
 * it. The rest of the machine does not see these mounts.
 *
 * With `--as`, the command runs in a user namespace whose root is the host's user ID, which nobody else has. Each
 * PATH after `--map` is mounted so that files of the host's root are this user's there; what this user makes is
 * root's. */
#include "privileged.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As in <linux/mount.h>. */
#define CLONE_TREE (1 | O_CLOEXEC)
#define EMPTY_PATH 0x1000
#define MOVE_EMPTY_PATH 4
#define MAP_OWNERS 0x100000
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif

static void write_map(pid_t pid, const char *name, const char *id) {
    char path[64], map[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int length = snprintf(map, sizeof map, "0 %s 1\n", id), fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, map, (size_t)length) != length) die("cannot map the user %s", id);
    close(fd);
}

/* A user namespace whose root is this user of the host. A child makes it, and ends when this process closes its end of
 * the connection, also by its own end. */
static int new_user_namespace(const char *id) {
    int ends[2];
    char path[64], byte;
    pid_t child = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? fork() : -1;
    if (child < 0) die("cannot fork");
    if (child == 0) {
        close(ends[0]);
        if (unshare(CLONE_NEWUSER) == 0 && write(ends[1], "", 1) == 1 && read(ends[1], &byte, 1) == 0) _exit(0);
        _exit(FAILED);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) die("no user namespace");
    write_map(child, "uid_map", id);
    write_map(child, "gid_map", id);
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)child);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) die("cannot open the user namespace");
    close(ends[0]);
    waitpid(child, NULL, 0);
    return fd;
}

/* A copy of the mount, in which owners are those that the user namespace maps. */
static int mapped_mount(const char *path, int users) {
    struct attributes mapped = {.set = MAP_OWNERS, .users = (uint64_t)users};
    int fd = (int)syscall(SYS_open_tree, AT_FDCWD, path, CLONE_TREE | RECURSIVE);
    if (fd < 0) die("cannot open %s", path);
    /* Mounts below it may be of a kind that cannot be mapped; they stay as they are then. */
    if (syscall(SYS_mount_setattr, fd, "", EMPTY_PATH | RECURSIVE, &mapped, sizeof mapped) != 0 &&
        syscall(SYS_mount_setattr, fd, "", EMPTY_PATH, &mapped, sizeof mapped) != 0)
        die("cannot map the owners of %s", path);
    return fd;
}

/* Mounts what `fd` names on the path that it had before the folders above it were covered. */
static void mount_again(int fd, char *path, int is_mapped) {
    char source[32];
    struct stat information;
    if (fstat(fd, &information) != 0) die("no %s", path);
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    if (S_ISDIR(information.st_mode)) make_folders(path, 0755);
    else {
        char *slash = strrchr(path, '/');
        *slash = 0;
        make_folders(path, 0755);
        *slash = '/';
        int point = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (point >= 0) close(point);
        else if (access(path, F_OK) != 0) die("cannot make %s", path);
    }
    if (is_mapped ? syscall(SYS_move_mount, fd, "", AT_FDCWD, path, MOVE_EMPTY_PATH) != 0
                  : mount(source, path, NULL, MS_BIND | MS_REC, NULL) != 0)
        die("cannot mount %s", path);
}

/* From here on nothing that is done has the host's root as its user. */
static void become_root_of(int users) {
    if (setgroups(0, NULL) != 0 || setns(users, CLONE_NEWUSER) != 0) die("cannot enter the user namespace");
    if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) die("cannot become the user of the boxes");
}

int open_paths_main(int argc, char **argv) {
    int begin = 0, end = 0, users = -1, first_mapped = argc;
    if (argc > 2 && strcmp(argv[0], "--as") == 0) users = new_user_namespace(argv[1]), begin = 2;
    int covers = begin;
    while (covers + 1 < argc && strcmp(argv[covers], "--cover") == 0) covers += 2;
    for (end = covers; end < argc && strcmp(argv[end], "--") != 0; end++)
        if (strcmp(argv[end], "--map") == 0) first_mapped = end + 1;
    int *fds = calloc((size_t)argc + 1, sizeof *fds);
    if (!fds || end + 1 >= argc) die("open-paths: no command");
    if (unshare(CLONE_NEWNS) != 0) die("no mount namespace, which files in closed folders of other users need");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) die("cannot keep mounts private");
    /* Opened in this namespace, as mounts of another one cannot be bound, and before any folder is covered. The command
     * does not inherit them. */
    for (int i = covers; i < end; i++) {
        if (i == first_mapped - 1) continue;
        fds[i] = i >= first_mapped ? mapped_mount(argv[i], users) : open(argv[i], O_PATH | O_CLOEXEC);
        if (fds[i] < 0) die("cannot open %s", argv[i]);
    }
    for (int i = begin + 1; i < covers; i += 2)
        if (mount("tmpfs", argv[i], "tmpfs", SAFE_FLAGS, "mode=755") != 0) die("cannot cover %s", argv[i]);
    for (int i = covers; i < end; i++)
        if (i != first_mapped - 1) mount_again(fds[i], argv[i], i >= first_mapped);
    if (users >= 0) become_root_of(users);
    execv(argv[end + 1], argv + end + 1);
    die("cannot run %s", argv[end + 1]);
}
