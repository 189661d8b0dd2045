/* Steps of `init` that make folders and mounts, and bring files into them. They run as root of the outer box or of the
 * judge's container, before anything of a submission or of the tests runs there. */
#include "privileged.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

void mount_overlay(const char *layers, const char *target, unsigned long flags) {
    char options[16384];
    int length = snprintf(options, sizeof options, "%s,userxattr", layers);
    if (length >= (int)sizeof options) die("overlay options too long");
    if (mount("overlay", target, "overlay", SAFE_FLAGS | flags, options) == 0) return;
    options[length - (int)strlen(",userxattr")] = 0; /* before Linux 5.11 there is no such option, and root needs none */
    if (mount("overlay", target, "overlay", SAFE_FLAGS | flags, options) != 0) die("cannot mount the overlay on %s", target);
}

static void add_overlay(char **words) {
    char layers[16384];
    int length = snprintf(layers, sizeof layers, "lowerdir=%s,upperdir=%s,workdir=%s", words[0], words[1], words[2]);
    if (length >= (int)sizeof layers) die("overlay options too long");
    mount_overlay(layers, words[3], 0);
}

/* An overlay marks a folder that was removed, or made anew, by an attribute of the file system of its changes. A tmpfs
 * has such attributes from Linux 6.6 on; without them `rmdir` and `mkdir` fail with EIO. */
static int can_mark_folders(const char *folder) {
    if (setxattr(folder, "user.overlay.trial", "", 0, 0) != 0) return 0;
    removexattr(folder, "user.overlay.trial");
    return 1;
}

/* A tmpfs whose size was once unlimited cannot be limited again. */
static void limit_tmpfs(const char *path, unsigned long long bytes, unsigned long long files) {
    char options[64];
    snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu", bytes, files);
    if (mount(NULL, path, NULL, MS_REMOUNT | SAFE_FLAGS, options) != 0) die("cannot limit %s", path);
}

/* Where an overlay cannot mark folders, the workspace is a copy of it, for which the tmpfs gets more room: the disk limit
 * is for what the boxes write. No control group counts the copy, so its size is limited, and the submission is blamed if
 * it exceeds that. The room of the tmpfs is the same, for a submission that grows while it is copied. */
static void add_workspace(char **words) {
    const char *scratch = words[1], *target = words[2];
    unsigned long long max_bytes = strtoull(words[3], NULL, 10);
    char up[PATH_MAX], work[PATH_MAX], copy[PATH_MAX];
    struct statvfs limit, used;
    snprintf(up, sizeof up, "%s/up", scratch), snprintf(work, sizeof work, "%s/work", scratch);
    add_overlay((char *[]){words[0], up, work, words[2]});
    if (can_mark_folders(up)) return;
    snprintf(copy, sizeof copy, "%s/copy", scratch);
    if (statvfs(scratch, &limit) != 0) die("cannot look at %s", scratch);
    limit_tmpfs(scratch, limit.f_blocks * limit.f_frsize + max_bytes, limit.f_files + max_bytes / limit.f_frsize);
    copy_workspace(target, copy, max_bytes);
    if (statvfs(scratch, &used) != 0) die("cannot look at %s", scratch);
    limit_tmpfs(scratch, (limit.f_blocks + used.f_blocks - used.f_bfree) * limit.f_frsize, limit.f_files + used.f_files - used.f_ffree);
    if (umount(target) != 0 || mount(copy, target, NULL, MS_BIND, NULL) != 0) die("cannot mount the copy on %s", target);
}

/* The kernel ignores MS_RDONLY while it binds: only the remount makes the folder read-only. */
static void mount_bind(char **words) {
    unsigned long flags = MS_REMOUNT | MS_BIND | SAFE_FLAGS | (strcmp(words[2], "ro") == 0 ? MS_RDONLY : 0);
    if (mount(words[0], words[1], NULL, MS_BIND, NULL) != 0) die("cannot mount %s", words[1]);
    if (mount(NULL, words[1], NULL, flags, NULL) != 0) die("cannot restrict the mount %s", words[1]);
}

/* Makes a program a command: in the folders of the default path, which is searched where a call has no PATH. The
 * container's root is read-only, so they are covered with themselves and a folder that has a link to the program. */
static void add_command(char **words) {
    static const char *const folders[] = {"/usr/bin", "/bin"};
    char link[PATH_MAX], covered[PATH_MAX] = "", folder[PATH_MAX], options[2 * PATH_MAX + 32];
    snprintf(link, sizeof link, "%s/%s", words[1], strrchr(words[0], '/') + 1);
    make_folders(words[1], 0755);
    if (symlink(words[0], link) != 0) die("cannot make %s", link);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!realpath(folders[i], folder) || strcmp(folder, covered) == 0) continue; /* /bin is often a link to /usr/bin */
        snprintf(options, sizeof options, "lowerdir=%s:%s", words[1], folder);
        if (mount("overlay", folder, "overlay", SAFE_FLAGS | MS_RDONLY, options) != 0) die("cannot mount an overlay on %s", folder);
        strcpy(covered, folder);
    }
}

static void mount_tmpfs(char **words) {
    make_folders(words[0], 0755);
    if (mount("tmpfs", words[0], "tmpfs", SAFE_FLAGS, words[1]) != 0) die("cannot mount %s", words[0]);
}

/* Of this process's own namespace. Nothing is mounted over it, so that nested boxes may mount theirs. */
static void mount_proc(char **words) {
    if (mount("proc", words[0], "proc", SAFE_FLAGS | MS_NOEXEC, NULL) != 0) die("cannot mount %s", words[0]);
}

static void make_folder(char **words) {
    make_folders(words[0], 0755);
    if (chmod(words[0], (mode_t)strtoul(words[1], NULL, 8)) != 0) die("cannot set the mode of %s", words[0]);
}

static void change_owner(char **words) {
    if (chown(words[0], (uid_t)atol(words[1]), (gid_t)atol(words[2])) != 0) die("cannot change the owner of %s", words[0]);
}

static void copy(char **words) { copy_tree(words[0], words[1], (uid_t)atol(words[2]), (gid_t)atol(words[3])); }

static void name_tree(char **words) { add_tree(words[0], words[1]); }

static void unpack_stdin(char **words) { unpack(STDIN_FILENO, (uid_t)atol(words[0]), (gid_t)atol(words[1])); }

static const struct { const char *name; int words; void (*take)(char **words); } steps[] = {
    {"--mkdir", 2, make_folder},   {"--tmpfs", 2, mount_tmpfs}, {"--overlay", 4, add_overlay}, {"--bind", 3, mount_bind},
    {"--chown", 3, change_owner},  {"--copy", 4, copy},         {"--tree", 2, name_tree},        {"--unpack", 2, unpack_stdin},
    {"--command", 2, add_command}, {"--proc", 1, mount_proc},  {"--workspace", 4, add_workspace},
};

int mount_step(const char *name, char **words, int left) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(name, steps[i].name) == 0 && left >= steps[i].words) return steps[i].take(words), steps[i].words;
    return -1;
}
