/* Tar writer: packs the reports that leave a container. It packs regular files and folders only: no other kind of file
 * is a report, and the evaluator could be harmed by it. */
#include "privileged.h"
#include "tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t written;

static void put(int out, const void *data, size_t length) {
    write_all(out, data, length);
    written += length;
}

/* Pads the archive with zeros to a whole number of units. */
static void pad(int out, size_t unit) {
    static const char zero[RECORD];
    put(out, zero, (unit - written % unit) % unit);
}

static void put_octal(char *field, size_t width, uint64_t value) {
    for (field[--width] = 0; width > 0; value >>= 3) field[--width] = (char)('0' + (value & 7));
}

static void put_header(int out, enum type type, const char *name, mode_t mode, uint64_t size) {
    struct header header = {.type = (char)type, .magic = "ustar", .version = {'0', '0'}};
    memcpy(header.name, name, strnlen(name, sizeof header.name));
    put_octal(header.mode, sizeof header.mode, mode & 07777);
    put_octal(header.uid, sizeof header.uid, 0);
    put_octal(header.gid, sizeof header.gid, 0);
    put_octal(header.size, sizeof header.size, size);
    put_octal(header.mtime, sizeof header.mtime, 0);
    memset(header.checksum, ' ', sizeof header.checksum);
    unsigned sum = 0;
    for (size_t at = 0; at < sizeof header; at++) sum += ((unsigned char *)&header)[at];
    put_octal(header.checksum, 7, sum);
    put(out, &header, sizeof header);
}

/* Writes a line of attributes to `target`; the length at its start counts itself. */
static size_t format_attribute(char *target, size_t room, const char *key, const char *value) {
    size_t rest = strlen(key) + strlen(value) + 3, length = rest + 1;
    for (size_t bound = 10; length >= bound; bound *= 10) length = rest + (size_t)snprintf(NULL, 0, "%zu", length);
    if (snprintf(target, room, "%zu %s=%s\n", length, key, value) != (int)length || length >= room) die("a name is too long");
    return length;
}

/* The path and the exact time are attributes of every member, as neither fits a header. */
static void put_member(int out, enum type type, const char *path, const struct stat *information, uint64_t size) {
    static char attributes[MAX_ATTRIBUTES];
    char number[64];
    size_t length = format_attribute(attributes, sizeof attributes, "hdrcharset", "BINARY");
    length += format_attribute(attributes + length, sizeof attributes - length, "path", path);
    int64_t seconds = information->st_mtim.tv_sec;
    long nanoseconds = information->st_mtim.tv_nsec;
    int negative = seconds < 0;
    if (negative && nanoseconds > 0) seconds++, nanoseconds = 1000000000 - nanoseconds;
    snprintf(number, sizeof number, "%s%lld.%09ld", negative ? "-" : "", (long long)(negative ? -seconds : seconds), nanoseconds);
    length += format_attribute(attributes + length, sizeof attributes - length, "mtime", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)size);
    length += format_attribute(attributes + length, sizeof attributes - length, "size", number);
    put_header(out, ATTRIBUTES, "attributes", 0644, length);
    put(out, attributes, length);
    pad(out, BLOCK);
    put_header(out, type, "member", information->st_mode, size);
}

/* Writes as many bytes as the header says, even if the file changes meanwhile: the next member must stay readable. */
static void put_content(int out, int folder, const char *name, uint64_t size) {
    static char buffer[65536];
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) die("cannot read %s", name);
    for (ssize_t got = 0; size > 0; size -= (uint64_t)got) {
        size_t wanted = size < sizeof buffer ? (size_t)size : sizeof buffer;
        if ((got = read(fd, buffer, wanted)) <= 0) memset(buffer, 0, wanted), got = (ssize_t)wanted;
        put(out, buffer, (size_t)got);
    }
    close(fd);
    pad(out, BLOCK);
}

/* `path` is the folder's path, `length` bytes long, in a buffer of MAX_PATH_BYTES. */
static void pack_folder(int out, int fd, char *path, size_t length) {
    DIR *folder = fdopendir(fd);
    if (!folder) die("cannot read a folder");
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        struct stat information;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        size_t longer = length + 1 + strlen(name);
        errno = 0;
        if (longer >= MAX_PATH_BYTES) die("folders are nested too deep");
        path[length] = '/';
        memcpy(path + length + 1, name, strlen(name) + 1);
        if (fstatat(fd, name, &information, AT_SYMLINK_NOFOLLOW) != 0) die("cannot read %s", name);
        if (S_ISREG(information.st_mode)) {
            put_member(out, REGULAR, path, &information, (uint64_t)information.st_size);
            put_content(out, fd, name, (uint64_t)information.st_size);
        } else if (S_ISDIR(information.st_mode)) {
            int inner = openat(fd, name, FOLDER_FLAGS);
            if (inner < 0) die("cannot read %s", name);
            put_member(out, FOLDER, path, &information, 0);
            pack_folder(out, inner, path, longer);
        }
    }
    closedir(folder);
}

void pack(int out, const char *name, const char *source) {
    static char path[MAX_PATH_BYTES];
    int fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) die("cannot read %s", source);
    snprintf(path, sizeof path, "%s", name);
    pack_folder(out, fd, path, strlen(path));
}

/* The judge's status, as wait(2) gives it, comes last: an archive without it is incomplete. */
void pack_end(int out, int status) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d", status);
    put_header(out, REGULAR, STATUS_NAME, 0644, (uint64_t)length);
    put(out, text, (size_t)length);
    pad(out, BLOCK);
    static const char end[2 * BLOCK];
    put(out, end, sizeof end);
    pad(out, RECORD);
}
