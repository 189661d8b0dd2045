/* open-paths --cover FOLDER... PATH... -- COMMAND
 *
 * Runs a command as the host's root, in a mount namespace in which the paths can be reached without root's privileges
 * over other users' files: each FOLDER, which is closed, is covered by an empty one that is open, and has only those of
 * the paths that are in it. The rest of the machine does not see these mounts. */
#include "privileged.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Binds what `fd` names to the path that it had before the folders above it were covered. */
static void bind_again(int fd, char *path) {
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
        if (point < 0) die("cannot make %s", path);
        close(point);
    }
    if (mount(source, path, NULL, MS_BIND | MS_REC, NULL) != 0) die("cannot mount %s", path);
}

int open_paths_main(int argc, char **argv) {
    int covers = 0, end = 0;
    while (covers + 1 < argc && strcmp(argv[covers], "--cover") == 0) covers += 2;
    for (end = covers; end < argc && strcmp(argv[end], "--") != 0;) end++;
    int *fds = calloc((size_t)argc + 1, sizeof *fds);
    if (!fds || end + 1 >= argc) die("open-paths: no command");
    if (unshare(CLONE_NEWNS) != 0) die("no mount namespace, which files in closed folders of other users need");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) die("cannot keep mounts private");
    /* Opened in this namespace, as mounts of another one cannot be bound, and before any folder is covered. The command
     * does not inherit them. */
    for (int i = covers; i < end; i++)
        if ((fds[i] = open(argv[i], O_PATH | O_CLOEXEC)) < 0) die("cannot open %s", argv[i]);
    for (int i = 1; i < covers; i += 2)
        if (mount("tmpfs", argv[i], "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0) die("cannot cover %s", argv[i]);
    for (int i = covers; i < end; i++) bind_again(fds[i], argv[i]);
    execv(argv[end + 1], argv + end + 1);
    die("cannot run %s", argv[end + 1]);
}
