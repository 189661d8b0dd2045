/* Copying a submission into the workspace, and counting what a folder holds.
 *
 * Folders are walked by descriptors: a tree may be deeper than any path may be long, and no link of the submission's is
 * ever followed. The tally of the copy is sent to the evaluator, which compares it with its own: an engine on another
 * machine may have a different folder of the same name there. */
#include "privileged.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tally copied;
static uint32_t crc; /* of the entry that is being copied */
static struct { uid_t uid; gid_t gid; } owner;
/* Blocks of zeros become holes, which take no memory, and what cannot be read is there with mode 0: whoever cannot read it
 * here could not read it in an overlay either. */
static int for_workspace;
static unsigned long long room; /* pages that the rest of such a copy may have */

/* CRC-32 as zlib computes it. */
static void crc_add(const void *data, size_t length) {
    static uint32_t table[256];
    for (uint32_t i = 0; !table[255] && i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xEDB88320u : table[i] >> 1;
    }
    uint32_t value = ~crc;
    for (const unsigned char *at = data; length-- > 0; at++) value = table[(value ^ *at) & 0xFF] ^ value >> 8;
    crc = ~value;
}

static void crc_start(char kind, uint32_t depth, const char *name) {
    unsigned char head[5] = {(unsigned char)kind, (unsigned char)depth, (unsigned char)(depth >> 8), (unsigned char)(depth >> 16), (unsigned char)(depth >> 24)};
    crc = 0;
    crc_add(head, sizeof head);
    crc_add(name, strlen(name));
}

static int is_forbidden(void) { return for_workspace && (errno == EACCES || errno == EPERM); }

static int is_zero(const char *data, size_t length) { return length > 0 && !*data && memcmp(data, data + 1, length - 1) == 0; }

static unsigned long long page_size(void) { return (unsigned long long)sysconf(_SC_PAGESIZE); }

/* Everything counts as whole pages, and at least as one: many small files must not take more memory than a large one.
 * Holes count, too, as they do in containers. */
static void take_room(const struct stat *information) {
    unsigned long long size = S_ISREG(information->st_mode) ? (unsigned long long)information->st_size : 0;
    unsigned long long pages = size / page_size() + (size == 0 || size % page_size() > 0);
    if (pages > room) exit(WORKSPACE_TOO_LARGE);
    room -= pages;
}

/* Returns whether the file could be read. O_NONBLOCK: opening must not block if it was replaced by a pipe meanwhile. */
static int copy_content(int from, int to, const char *name) {
    static char buffer[65536];
    int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (source < 0 && !is_forbidden()) die("cannot read %s", name);
    int target = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (target < 0) die("cannot write %s", name);
    if (source < 0) {
        close(target);
        return 0;
    }
    struct stat information;
    if (fstat(source, &information) != 0) die("cannot read %s", name);
    for (ssize_t got; (got = read(source, buffer, sizeof buffer)) != 0;) {
        if (got < 0) die("cannot read %s", name);
        crc_add(buffer, (size_t)got);
        if (for_workspace && is_zero(buffer, (size_t)got)) lseek(target, got, SEEK_CUR);
        else write_all(target, buffer, (size_t)got);
        copied.bytes += (unsigned long long)got;
    }
    if (for_workspace && ftruncate(target, lseek(target, 0, SEEK_CUR)) != 0) die("cannot write %s", name);
    struct timespec times[2] = {{0, UTIME_NOW}, information.st_mtim};
    futimens(target, times);
    close(source);
    close(target);
    return 1;
}

static void copy_link(int from, int to, const char *name) {
    char target[PATH_MAX];
    ssize_t length = readlinkat(from, name, target, sizeof target - 1);
    if (length < 0) die("cannot read %s", name);
    target[length] = 0;
    crc_add(target, (size_t)length);
    if (symlinkat(target, to, name) != 0) die("cannot make the link %s", name);
}

/* The letter of a kind of file in the checksum; 0 for devices, which are never copied. */
static char kind_of(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG: return 'F';
    case S_IFDIR: return 'D';
    case S_IFLNK: return 'L';
    case S_IFIFO: return 'P';
    case S_IFSOCK: return 'S';
    default: return 0;
    }
}

/* Names that the evaluation itself uses in a workspace: a submission's own files of these names are not copied. */
static const char *const reserved[] = {".evaluation_tests", ".scbench"};

static int is_reserved(const char *name) { return strcmp(name, reserved[0]) == 0 || strcmp(name, reserved[1]) == 0; }

static void make_reserved_folders(const char *workspace) {
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (snprintf(path, sizeof path, "%s/%s", workspace, reserved[i]) >= (int)sizeof path) die("path too long: %s", workspace);
        make_folders(path, 0755);
    }
}

static void copy_folder(int from, int to, uint32_t depth) {
    DIR *folder = fdopendir(from);
    if (!folder) die("cannot read a folder");
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        struct stat information;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (depth == 0 && is_reserved(name))) continue;
        if (fstatat(from, name, &information, AT_SYMLINK_NOFOLLOW) != 0) die("cannot read %s", name);
        char kind = kind_of(information.st_mode);
        if (!kind) continue;
        if (for_workspace) take_room(&information);
        crc_start(kind, depth, name);
        int is_read = 1, inner_from = -1;
        if (kind == 'F') is_read = copy_content(from, to, name);
        else if (kind == 'L') copy_link(from, to, name);
        else if (kind == 'D' && mkdirat(to, name, 0700) != 0) die("cannot make %s", name);
        else if (kind == 'P' && mknodat(to, name, S_IFIFO | 0600, 0) != 0) die("cannot make %s", name);
        else if (kind == 'S' && mknodat(to, name, S_IFSOCK | 0600, 0) != 0) die("cannot make %s", name);
        copied.entries++;
        copied.checksum += crc;
        set_owner(to, name, owner.uid, owner.gid);
        if (kind == 'D' && (inner_from = openat(from, name, FOLDER_FLAGS)) < 0) {
            if (!is_forbidden()) die("cannot enter %s", name);
            is_read = 0;
        }
        if (kind != 'L') set_mode(to, name, is_read ? information.st_mode : 0);
        if (inner_from < 0) continue;
        int inner_to = openat(to, name, FOLDER_FLAGS);
        if (inner_to < 0) die("cannot enter %s", name);
        copy_folder(inner_from, inner_to, depth + 1);
        close(inner_to);
    }
    closedir(folder);
}

void copy_tree(const char *source, const char *target, uid_t uid, gid_t gid) {
    int from = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0) die("cannot read %s", source);
    make_folders(target, 0755);
    int to = open(target, FOLDER_FLAGS);
    if (to < 0 || fchown(to, uid, gid) != 0) die("cannot use %s", target);
    copied = (struct tally){0, 0, 0};
    owner.uid = uid, owner.gid = gid;
    copy_folder(from, to, 0);
    close(to);
}

void copy_workspace(const char *source, const char *target, unsigned long long max_bytes) {
    for_workspace = 1;
    room = max_bytes / page_size();
    copy_tree(source, target, 0, 0);
    make_reserved_folders(target);
}

void set_owner(int folder, const char *name, uid_t uid, gid_t gid) {
    if (fchownat(folder, name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0) die("cannot change the owner of %s", name);
}

/* Set-user-ID and set-group-ID are dropped: nothing of a submission runs as anybody else. */
void set_mode(int folder, const char *name, mode_t mode) {
    if (fchmodat(folder, name, mode & 01777, 0) != 0) die("cannot set the mode of %s", name);
}

static void count(int fd, struct tally *tally) {
    DIR *folder = fdopendir(fd);
    if (!folder) die("cannot read a folder");
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat information;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (fstatat(fd, entry->d_name, &information, AT_SYMLINK_NOFOLLOW) != 0) die("cannot read %s", entry->d_name);
        tally->entries++;
        if (S_ISREG(information.st_mode)) tally->bytes += (uint64_t)information.st_size;
        if (S_ISDIR(information.st_mode)) count(openat(fd, entry->d_name, FOLDER_FLAGS), tally);
    }
    closedir(folder);
}

int count_main(int argc, char **argv) {
    struct tally tally = {0, 0, 0};
    if (argc != 1) die("count: one folder expected");
    int fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) die("cannot read %s", argv[0]);
    count(fd, &tally);
    return printf("%llu %llu\n", tally.entries, tally.bytes) < 0;
}
