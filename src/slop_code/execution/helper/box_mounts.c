/* Steps of `box` that make the root of a new box: bwrap's options of the same names, in their order.
 *
 * The root is built at NEW_ROOT in a mount namespace of the box's own, while the folders of the surrounding box are
 * still in place. bwrap itself reads the whole table of mounts for each mount, which takes far longer than to make
 * it. */
#include "privileged.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BASE "/box/root" /* an empty folder of the surrounding box */
#define NEW_ROOT BASE "/new"
#define MAX_LAYERS 4
#define MAX_COPY (16 << 20)

static char *layers[MAX_LAYERS];
static const char *tmpfs_size;
static int layer_count, overlay_count;

static char *joined(const char *first, const char *second) {
    static char paths[2][PATH_MAX];
    static int turn;
    char *path = paths[turn ^= 1];
    if (snprintf(path, PATH_MAX, "%s%s", first, second) >= PATH_MAX) die("path too long: %s", second);
    return path;
}

/* Makes folders of the new root. A link in it would lead out of it, to the folder of that name of the surrounding
 * box. */
static void make_path(char *path) {
    struct stat info;
    for (char *end = path + strlen(NEW_ROOT); *end;) {
        end += strcspn(end + 1, "/") + 1;
        char next = *end;
        *end = 0;
        if (lstat(path, &info) != 0 && (errno != ENOENT || mkdir(path, 0755) != 0 || lstat(path, &info) != 0)) die("cannot make %s", path);
        errno = 0;
        if (S_ISLNK(info.st_mode)) die("%s is a link, and cannot be mounted on", path);
        *end = next;
    }
}

static char *new_folder(const char *path) {
    char *target = joined(NEW_ROOT, strcmp(path, "/") == 0 ? "" : path);
    make_path(target);
    return target;
}

/* The path of a new entry in a folder that is made where it is missing. */
static char *new_entry(const char *path) {
    char *target = joined(NEW_ROOT, path), *slash = strrchr(target, '/');
    *slash = 0;
    make_path(target);
    *slash = '/';
    return target;
}

/* `is_new`: whether it was not there before. */
static char *new_file(const char *path, int *is_new) {
    char *target = new_entry(path);
    int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (fd < 0 && errno != EEXIST) die("cannot make %s", target);
    *is_new = fd >= 0;
    if (fd >= 0) close(fd);
    else make_path(target); /* which it was before, and no link */
    return target;
}

/* For kernels before Linux 5.12. The other flags of the mount stay. */
static void remount_with(const char *target, unsigned long flags) {
    static const struct { unsigned long stat, mount; } known[] = {
        {ST_RDONLY, MS_RDONLY}, {ST_NOSUID, MS_NOSUID}, {ST_NODEV, MS_NODEV}, {ST_NOEXEC, MS_NOEXEC}, {ST_NOATIME, MS_NOATIME},
        {ST_NODIRATIME, MS_NODIRATIME}, {ST_RELATIME, MS_RELATIME}, {STATFS_NOSYMFOLLOW, MS_NOSYMFOLLOW},
    };
    struct statvfs now;
    unsigned long present = 0;
    if (statvfs(target, &now) != 0) die("cannot look at the mount %s", target);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (now.f_flag & known[i].stat) present |= known[i].mount;
    if ((present | flags) == present) return;
    if (mount(NULL, target, NULL, MS_REMOUNT | MS_BIND | present | flags, NULL) != 0) die("cannot restrict the mount %s", target);
}

/* The table of mounts has a space, a tab, a newline and a backslash as octal numbers. */
static void decode_path(char *path) {
    char *to = path;
    for (; *path; path++)
        if (*path == '\\') *to++ = (char)strtol((char[]){path[1], path[2], path[3], 0}, NULL, 8), path += 3;
        else *to++ = *path;
    *to = 0;
}

static void remount_below(const char *target, unsigned long flags) {
    static char line[3 * PATH_MAX], path[PATH_MAX];
    size_t length = strlen(target);
    FILE *table = fopen("/proc/self/mountinfo", "re");
    if (!table) die("no table of mounts");
    while (fgets(line, sizeof line, table)) {
        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) != 1) die("cannot read the table of mounts");
        decode_path(path);
        if (strncmp(path, target, length) == 0 && path[length] == '/') remount_with(path, flags);
    }
    fclose(table);
}

/* Adds flags to a mount, and to all mounts below it: the surrounding box may have writable ones there. */
static void add_flags(const char *target, unsigned long flags, int below) {
    struct attributes more = {.set = flags}; /* these flags have the same numbers there */
    if (syscall(SYS_mount_setattr, AT_FDCWD, target, below ? RECURSIVE : 0, &more, sizeof more) == 0) return;
    if (errno != ENOSYS) die("cannot restrict the mount %s", target);
    remount_with(target, flags);
    if (below) remount_below(target, flags);
}

/* Fills the new, empty file; returns 0 when all is there. `--remount-ro /` protects it like the rest of the new
 * root. */
static int copy_content(const char *source, const char *target, mode_t mode) {
    int from = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result = -1;
    unlink(target); /* it is read-only */
    int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (from >= 0 && to >= 0) {
        ssize_t count;
        for (size_t left = MAX_COPY; (count = sendfile(to, from, NULL, left)) > 0;) left -= (size_t)count;
        char rest;
        if (count == 0 && read(from, &rest, 1) == 0) result = fchmod(to, mode & 0555);
    }
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    return result;
}

static void bind_path(const char *source, const char *path, unsigned long flags) {
    struct stat info;
    int is_new = 0;
    if (stat(source, &info) != 0) die("no %s", source);
    char *target = S_ISDIR(info.st_mode) ? new_folder(path) : new_file(path, &is_new);
    if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) != 0) {
        /* A file that the host replaced since the surrounding box was made, such as ld.so.cache at an installation, has
         * no name any more, and the kernel mounts nothing without a name. Who may not write to it gets a copy. */
        int was_replaced = errno == ENOENT && S_ISREG(info.st_mode) && is_new && (flags & MS_RDONLY);
        if (!was_replaced || copy_content(source, target, info.st_mode) != 0) die("cannot mount %s on %s", source, path);
        return;
    }
    add_flags(target, flags, 1);
}

static void take_bind(char **words) { bind_path(words[0], words[1], SAFE_FLAGS); }

static void take_dev_bind(char **words) { bind_path(words[0], words[1], MS_NOSUID); }

static void take_ro_bind(char **words) { bind_path(words[0], words[1], SAFE_FLAGS | MS_RDONLY); }

static void take_ro_bind_try(char **words) {
    if (access(words[0], F_OK) == 0) take_ro_bind(words);
}

static void take_symlink(char **words) {
    if (symlink(words[0], new_entry(words[1])) != 0) die("cannot make the link %s", words[1]);
}

static void take_dir(char **words) { new_folder(words[0]); }

static void take_size(char **words) { tmpfs_size = words[0]; }

static void take_tmpfs(char **words) {
    char options[128];
    snprintf(options, sizeof options, "mode=0755%s%s", tmpfs_size ? ",size=" : "", tmpfs_size ? tmpfs_size : "");
    tmpfs_size = NULL;
    if (mount("tmpfs", new_folder(words[0]), "tmpfs", SAFE_FLAGS, options) != 0) die("cannot mount %s", words[0]);
}

static void take_remount_ro(char **words) { add_flags(new_folder(words[0]), MS_RDONLY, 0); }

/* Programs do not need to change anything there, and root of the host could. */
static void take_proc(char **words) {
    static const char *const covered[] = {"/sys", "/sysrq-trigger", "/irq", "/bus"};
    char proc[PATH_MAX];
    snprintf(proc, sizeof proc, "%s", new_folder(words[0]));
    if (mount("proc", proc, "proc", SAFE_FLAGS | MS_NOEXEC, NULL) != 0) die("cannot mount %s", words[0]);
    for (size_t i = 0; i < sizeof covered / sizeof *covered; i++) {
        char *path = joined(proc, covered[i]);
        if (access(path, W_OK) != 0) continue;
        if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) != 0) die("cannot cover %s", path);
        add_flags(path, SAFE_FLAGS | MS_NOEXEC | MS_RDONLY, 1);
    }
}

static void take_dev(char **words) {
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const links[][2] = {
        {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
        {"/proc/self/fd", "fd"},      {"/proc/kcore", "core"},       {"pts/ptmx", "ptmx"},
    };
    char path[PATH_MAX], node[64];
    if (mount("tmpfs", new_folder(words[0]), "tmpfs", SAFE_FLAGS, "mode=0755") != 0) die("cannot mount %s", words[0]);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        snprintf(node, sizeof node, "/dev/%s", nodes[i]);
        snprintf(path, sizeof path, "%s/%s", words[0], nodes[i]);
        bind_path(node, path, MS_NOSUID);
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "%s/%s", words[0], links[i][1]);
        take_symlink((char *[]){(char *)links[i][0], path});
    }
    snprintf(path, sizeof path, "%s/shm", words[0]);
    new_folder(path);
    snprintf(path, sizeof path, "%s/pts", words[0]);
    if (mount("devpts", new_folder(path), "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") != 0)
        die("cannot mount %s", path);
}

static void take_overlay_src(char **words) {
    errno = 0;
    if (layer_count == MAX_LAYERS) die("box: too many layers");
    layers[layer_count++] = words[0];
}

/* The last layer is the uppermost. `upper`: where changes go, in memory; NULL: read-only. */
static void mount_layers(const char *path, const char *upper) {
    char options[8192] = "lowerdir=";
    size_t length = strlen(options);
    for (int i = layer_count - 1; i >= 0 && length < sizeof options; i--)
        length += (size_t)snprintf(options + length, sizeof options - length, "%s%s", layers[i], i ? ":" : "");
    if (upper && length < sizeof options)
        length += (size_t)snprintf(options + length, sizeof options - length, ",upperdir=%s/up,workdir=%s/work", upper, upper);
    errno = 0;
    if (length >= sizeof options) die("overlay options too long");
    mount_overlay(options, new_folder(path), upper ? 0 : MS_RDONLY);
    layer_count = 0;
}

static void take_ro_overlay(char **words) { mount_layers(words[0], NULL); }

static void take_tmp_overlay(char **words) {
    char upper[64], folder[80];
    snprintf(upper, sizeof upper, BASE "/overlay-%d", overlay_count++);
    for (int i = 0; i < 2; i++) {
        snprintf(folder, sizeof folder, "%s/%s", upper, i ? "work" : "up");
        make_folders(folder, 0755);
    }
    mount_layers(words[0], upper);
}

static const struct { const char *name; int words; void (*take)(char **words); } steps[] = {
    {"--bind", 2, take_bind},       {"--ro-bind", 2, take_ro_bind},         {"--ro-bind-try", 2, take_ro_bind_try},
    {"--dev-bind", 2, take_dev_bind}, {"--symlink", 2, take_symlink},       {"--dir", 1, take_dir},
    {"--size", 1, take_size},       {"--tmpfs", 1, take_tmpfs},             {"--remount-ro", 1, take_remount_ro},
    {"--proc", 1, take_proc},       {"--dev", 1, take_dev},                 {"--overlay-src", 1, take_overlay_src},
    {"--ro-overlay", 1, take_ro_overlay}, {"--tmp-overlay", 1, take_tmp_overlay},
};

int root_step_words(const char *name) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(name, steps[i].name) == 0) return steps[i].words;
    return -1;
}

void take_root_step(const char *name, char **words) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(name, steps[i].name) == 0) steps[i].take(words);
}

void begin_root(void) {
    if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) != 0) die("cannot keep mounts to this box");
    if (mount("tmpfs", BASE, "tmpfs", SAFE_FLAGS, "mode=0755") != 0) die("cannot mount " BASE);
    if (mkdir(NEW_ROOT, 0755) != 0 || mount(NEW_ROOT, NEW_ROOT, NULL, MS_BIND, NULL) != 0) die("cannot make " NEW_ROOT);
    add_flags(NEW_ROOT, SAFE_FLAGS, 0);
}

/* From here on nothing of the surrounding box can be reached. */
void enter_root(void) {
    if (chdir(NEW_ROOT) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) die("cannot enter " NEW_ROOT);
    if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) die("cannot leave the surrounding box");
}
