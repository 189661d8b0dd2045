/* Trees on a stream: how a submission, tests and reports travel into a container and out of it.
 * Walked by descriptors, as trees may be deeper than any path may be long. */
#include "slopbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct record {
    uint8_t kind; /* Tree, Directory, Up, File, Link, Pipe, Socket, End */
    uint8_t flags;
    uint16_t zero;
    uint32_t mode; /* of an End: the status as wait(2) gives it */
    uint32_t name; /* bytes of the name that follows */
    uint32_t zero2;
    uint64_t size; /* bytes of content behind the name; of a Link: its target */
    int64_t mtime; /* nanoseconds */
};

struct tally copied;
static uint32_t crc; /* of the entry at hand */

/* CRC-32 as zlib has it. */
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

/* Starts a new entry: its kind, how deep it lies, its name. */
static void crc_start(uint8_t kind, uint32_t depth, const char *name) {
    unsigned char head[5] = {kind, (unsigned char)depth, (unsigned char)(depth >> 8), (unsigned char)(depth >> 16), (unsigned char)(depth >> 24)};
    crc = 0;
    crc_add(head, sizeof head);
    crc_add(name, strlen(name));
}

static void put(int out, const void *data, size_t length) {
    for (const char *at = data; length > 0;) {
        ssize_t wrote = write(out, at, length);
        if (wrote < 0 && errno != EINTR) die("cannot send");
        if (wrote > 0) at += wrote, length -= (size_t)wrote;
    }
}

static void get(int in, void *data, size_t length) {
    for (char *at = data; length > 0;) {
        ssize_t got = read(in, at, length);
        if (got == 0) errno = 0;
        if (got == 0 || (got < 0 && errno != EINTR)) die("what was sent breaks off");
        if (got > 0) at += got, length -= (size_t)got;
    }
}

static void put_record(int out, int kind, int flags, const char *name, const struct stat *information, uint64_t size) {
    struct record record = {.kind = (uint8_t)kind, .flags = (uint8_t)flags, .name = (uint32_t)strlen(name), .size = size};
    if (information) {
        record.mode = information->st_mode & 07777;
        record.mtime = (int64_t)information->st_mtim.tv_sec * 1000000000 + information->st_mtim.tv_nsec;
    }
    put(out, &record, sizeof record);
    put(out, name, record.name);
}

/* As many bytes as were announced, whatever becomes of the file meanwhile. */
static void put_content(int out, int folder, const char *name, uint64_t size) {
    char buffer[65536];
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) die("cannot read %s", name);
    for (ssize_t got = 0; size > 0; size -= (uint64_t)got) {
        size_t wanted = size < sizeof buffer ? (size_t)size : sizeof buffer;
        if ((got = read(fd, buffer, wanted)) <= 0) memset(buffer, 0, wanted), got = (ssize_t)wanted;
        put(out, buffer, (size_t)got);
    }
    close(fd);
}

/* Names the evaluation itself puts into a workspace; a submission's own are never looked at. */
static int is_reserved(const char *name) { return strcmp(name, ".evaluation_tests") == 0 || strcmp(name, ".scbench") == 0; }

static void pack_folder(int out, int fd, int is_workspace) {
    DIR *folder = fdopendir(fd);
    if (!folder) die("cannot read a folder");
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        struct stat information;
        char target[PATH_MAX];
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (is_workspace && is_reserved(name))) continue;
        if (fstatat(fd, name, &information, AT_SYMLINK_NOFOLLOW) != 0) die("cannot read %s", name);
        if (S_ISREG(information.st_mode)) {
            put_record(out, 'F', 0, name, &information, (uint64_t)information.st_size);
            put_content(out, fd, name, (uint64_t)information.st_size);
        } else if (S_ISDIR(information.st_mode)) {
            int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (inner < 0) die("cannot read %s", name);
            put_record(out, 'D', 0, name, &information, 0);
            pack_folder(out, inner, 0);
            put_record(out, 'U', 0, "", NULL, 0);
        } else if (S_ISLNK(information.st_mode)) {
            ssize_t length = readlinkat(fd, name, target, sizeof target);
            if (length < 0) die("cannot read %s", name);
            put_record(out, 'L', 0, name, &information, (uint64_t)length);
            put(out, target, (size_t)length);
        } else if (S_ISFIFO(information.st_mode) || S_ISSOCK(information.st_mode)) {
            put_record(out, S_ISFIFO(information.st_mode) ? 'P' : 'S', 0, name, &information, 0);
        }
    }
    closedir(folder);
}

void pack(int out, const char *source, const char *as, int flags) {
    int fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) die("cannot read %s", source);
    put_record(out, 'T', flags, as, NULL, 0);
    pack_folder(out, fd, flags & USERS);
}

void pack_end(int out, int status) {
    struct record record = {.kind = 'E', .mode = (uint32_t)status};
    put(out, &record, sizeof record);
}

static void unpack_file(int in, int folder, const char *name, const struct record *record) {
    char buffer[65536];
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) die("cannot write %s", name);
    for (uint64_t left = record->size; left > 0;) {
        size_t part = left < sizeof buffer ? (size_t)left : sizeof buffer;
        get(in, buffer, part);
        crc_add(buffer, part);
        put(fd, buffer, part);
        left -= part;
    }
    int64_t nanoseconds = (record->mtime % 1000000000 + 1000000000) % 1000000000; /* times before 1970 too */
    struct timespec times[2] = {{0, UTIME_NOW}, {(record->mtime - nanoseconds) / 1000000000, nanoseconds}};
    futimens(fd, times);
    close(fd);
}

static void unpack_link(int in, int folder, const char *name, const struct record *record) {
    char target[PATH_MAX];
    if (record->size >= sizeof target) die("a link is too long");
    get(in, target, (size_t)record->size);
    target[record->size] = 0;
    crc_add(target, (size_t)record->size);
    if (strlen(target) != record->size) die("what was sent is no tree");
    if (symlinkat(target, folder, name) != 0) die("cannot make the link %s", name);
}

/* What belongs to the user keeps its modes; what is ours, everyone may read and nobody but root may write. */
static void belong(int folder, const char *name, const struct record *record, int users, uid_t uid, gid_t gid) {
    mode_t mode = users ? record->mode & 01777 : (record->mode & 0755) | 0444;
    if (!users && (record->kind == 'D' || mode & 0111)) mode |= 0111;
    if (users && fchownat(folder, name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0) die("cannot give away %s", name);
    if (record->kind != 'L' && fchmodat(folder, name, mode, 0) != 0) die("cannot set the mode of %s", name);
}

static int begin_tree(const char *path, int users, uid_t uid, gid_t gid) {
    make_folders(path, 0755);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (users && fchown(fd, uid, gid) != 0)) die("cannot use %s", path);
    return fd;
}

static int step(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) die("cannot enter %s", name);
    close(folder);
    return fd;
}

int unpack(int in, uid_t uid, gid_t gid) {
    int folder = -1, users = 0, depth = 0;
    for (;;) {
        struct record record;
        char name[PATH_MAX];
        get(in, &record, sizeof record);
        errno = 0;
        if (record.kind == 'E') {
            if (folder >= 0) close(folder);
            return (int)record.mode;
        }
        if (record.name >= sizeof name) die("a name is too long");
        get(in, name, record.name);
        name[record.name] = 0;
        if (strlen(name) != record.name) die("what was sent is no tree");
        if (record.kind == 'T') {
            if (folder >= 0) close(folder);
            users = record.flags & USERS;
            depth = 0;
            folder = begin_tree(name, users, uid, gid);
            continue;
        }
        int goes_up = record.kind == 'U' && depth-- > 0, is_entry = record.kind && strchr("FLDPS", record.kind) && name[0];
        if (folder < 0 || strchr(name, '/') || strcmp(name, "..") == 0 || !(goes_up || is_entry)) die("what was sent is no tree");
        if (goes_up) {
            folder = step(folder, "..");
            continue;
        }
        crc_start(record.kind, (uint32_t)depth, name);
        if (record.kind == 'F') unpack_file(in, folder, name, &record);
        else if (record.kind == 'L') unpack_link(in, folder, name, &record);
        else if (record.kind == 'D' && mkdirat(folder, name, 0700) != 0) die("cannot make %s", name);
        else if (record.kind == 'P' && mknodat(folder, name, S_IFIFO | 0600, 0) != 0) die("cannot make %s", name);
        else if (record.kind == 'S' && mknodat(folder, name, S_IFSOCK | 0600, 0) != 0) die("cannot make %s", name);
        belong(folder, name, &record, users, uid, gid);
        copied.entries++;
        copied.bytes += record.kind == 'F' ? record.size : 0;
        copied.sum += crc;
        if (record.kind == 'D') folder = step(folder, name), depth++;
    }
}

static void measure(int fd, struct tally *tally) {
    DIR *folder = fdopendir(fd);
    if (!folder) die("cannot read a folder");
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat information;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (fstatat(fd, entry->d_name, &information, AT_SYMLINK_NOFOLLOW) != 0) die("cannot read %s", entry->d_name);
        tally->entries++;
        if (S_ISREG(information.st_mode)) tally->bytes += (uint64_t)information.st_size;
        if (S_ISDIR(information.st_mode)) measure(openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), tally);
    }
    closedir(folder);
}

int measure_main(int argc, char **argv) {
    struct tally tally = {0, 0, 0};
    if (argc != 1) die("measure: one folder expected");
    int fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) die("cannot read %s", argv[0]);
    measure(fd, &tally);
    return printf("%llu %llu\n", tally.entries, tally.bytes) < 0;
}

void copy_tree(const char *source, const char *target, uid_t uid, gid_t gid) {
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0) die("no pipe");
    pid_t sender = fork();
    if (sender < 0) die("cannot fork");
    if (sender == 0) {
        close(ends[0]);
        pack(ends[1], source, target, USERS);
        pack_end(ends[1], 0);
        _exit(0);
    }
    close(ends[1]);
    copied = (struct tally){0, 0, 0};
    unpack(ends[0], uid, gid);
    close(ends[0]);
    errno = 0;
    if (waitpid(sender, &status, 0) != sender || status != 0) die("cannot copy %s", source);
}
