/* Tar reader: unpacks the archive that brings a submission and tests into a container.
 *
 * The reader takes what the evaluator writes, and refuses everything else. It runs as root of the container, and a
 * submission chose names and contents: hard links, devices, sparse files, names that lead out of their tree and
 * anything twice have no use here and could only be attacks. */
#include "privileged.h"
#include "tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_MEMBERS 4000000
#define MAX_TOTAL_SIZE (16ull << 30)
#define MAX_DIGITS 18
#define MAX_TREES 8

struct member {
    char type;
    int is_socket;
    mode_t mode;
    uint64_t uid, gid, size;
    struct timespec mtime;
    char path[MAX_PATH_BYTES];
    char target[PATH_MAX];
};

static struct { const char *name; int fd; } trees[MAX_TREES];
static int tree_count;

void add_tree(const char *name, const char *path) {
    errno = 0;
    if (tree_count == MAX_TREES) die("more than %d trees", MAX_TREES);
    make_folders(path, 0755);
    int fd = open(path, FOLDER_FLAGS);
    if (fd < 0) die("cannot use %s", path);
    trees[tree_count].name = name, trees[tree_count++].fd = fd;
}

static _Noreturn void refuse(const char *reason) {
    errno = 0;
    die("the archive is refused: %s", reason);
}

/* GNU's binary numbers are refused: pax attributes carry what octal digits cannot. */
static uint64_t octal(const char *field, size_t width) {
    uint64_t value = 0;
    size_t at = 0;
    for (; at < width && field[at] >= '0' && field[at] <= '7'; at++) value = value << 3 | (uint64_t)(field[at] - '0');
    if (at == 0 || (at < width && field[at] != 0 && field[at] != ' ')) refuse("a number is not octal");
    return value;
}

/* The number of digits is bounded, so that the value always fits. */
static uint64_t decimal(const char *text, const char **end) {
    uint64_t value = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > MAX_DIGITS) refuse("an attribute is no number");
    for (size_t at = 0; at < digits; at++) value = value * 10 + (uint64_t)(text[at] - '0');
    *end = text + digits;
    return value;
}

static uint64_t whole_number(const char *text) {
    const char *end;
    uint64_t value = decimal(text, &end);
    if (*end) refuse("an attribute is no number");
    return value;
}

/* Seconds since 1970, possibly negative and with a fraction. */
static struct timespec timestamp(const char *text) {
    const char *end;
    int negative = *text == '-';
    int64_t seconds = (int64_t)decimal(text + negative, &end);
    long nanoseconds = 0, unit = 100000000;
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10) nanoseconds += (*end - '0') * unit;
    if (*end) refuse("a time is no number");
    if (!negative) return (struct timespec){seconds, nanoseconds};
    return nanoseconds ? (struct timespec){-seconds - 1, 1000000000 - nanoseconds} : (struct timespec){-seconds, 0};
}

static void copy_text(char *target, size_t size, const char *text) {
    size_t length = strlen(text);
    if (length >= size) refuse("a name is too long");
    memcpy(target, text, length + 1);
}

static void apply_attribute(struct member *member, const char *key, const char *value) {
    if (strcmp(key, "path") == 0) copy_text(member->path, sizeof member->path, value);
    else if (strcmp(key, "linkpath") == 0) copy_text(member->target, sizeof member->target, value);
    else if (strcmp(key, "size") == 0) member->size = whole_number(value);
    else if (strcmp(key, "uid") == 0) member->uid = whole_number(value);
    else if (strcmp(key, "gid") == 0) member->gid = whole_number(value);
    else if (strcmp(key, "mtime") == 0) member->mtime = timestamp(value);
    else if (strcmp(key, "SCHILY.filetype") == 0 && strcmp(value, "socket") == 0) member->is_socket = 1;
    else if (strcmp(key, "hdrcharset") != 0) refuse("an attribute is unknown"); /* names are bytes, whatever the charset */
}

/* Lines of "LENGTH KEY=VALUE\n", where the length counts the whole line. */
static void apply_attributes(struct member *member, char *text, size_t size) {
    for (char *line = text, *end = text + size; line < end;) {
        size_t length = 0;
        char *key = line;
        while (key < end && *key >= '0' && *key <= '9' && length <= size) length = length * 10 + (size_t)(*key++ - '0');
        if (key == end || *key++ != ' ') refuse("an attribute has no length");
        if (length > (size_t)(end - line) || line + length <= key || line[length - 1] != '\n') refuse("an attribute has a wrong length");
        line[length - 1] = 0;
        char *value = strchr(key, '=');
        if (!value) refuse("an attribute has no value");
        *value++ = 0;
        /* With a NUL inside, the checked name would differ from the name that is used. */
        if (value + strlen(value) != line + length - 1) refuse("an attribute has a NUL");
        apply_attribute(member, key, value);
        line += length;
    }
}

static int is_zero(const void *block) {
    static const char zero[BLOCK];
    return memcmp(block, zero, BLOCK) == 0;
}

/* Returns 0 for the two blocks of zeros that end an archive. */
static int read_header(int in, struct header *header) {
    read_all(in, header, sizeof *header);
    if (is_zero(header)) {
        read_all(in, header, sizeof *header);
        if (!is_zero(header)) refuse("a single block of zeros");
        return 0;
    }
    unsigned sum = 8 * ' '; /* the field of the sum itself counts as spaces */
    for (size_t at = 0; at < sizeof *header; at++)
        if (at < offsetof(struct header, checksum) || at >= offsetof(struct header, type)) sum += ((unsigned char *)header)[at];
    if (memcmp(header->magic, "ustar", sizeof header->magic) != 0) refuse("it is no ustar archive");
    if (octal(header->checksum, sizeof header->checksum) != sum) refuse("a header has a wrong checksum");
    return 1;
}

static void skip_padding(int in, uint64_t size) {
    char padding[BLOCK];
    read_all(in, padding, (BLOCK - size % BLOCK) % BLOCK);
}

static void fill_member(struct member *member, const struct header *header) {
    member->type = header->type;
    member->is_socket = 0;
    member->mode = (mode_t)octal(header->mode, sizeof header->mode);
    member->uid = octal(header->uid, sizeof header->uid);
    member->gid = octal(header->gid, sizeof header->gid);
    member->size = octal(header->size, sizeof header->size);
    member->mtime = (struct timespec){(time_t)octal(header->mtime, sizeof header->mtime), 0};
    int prefix = (int)strnlen(header->prefix, sizeof header->prefix);
    snprintf(member->path, sizeof member->path, "%.*s%s%.100s", prefix, header->prefix, prefix ? "/" : "", header->name);
    snprintf(member->target, sizeof member->target, "%.100s", header->target);
}

/* Reads the next member with its attributes; returns 0 at the end of the archive. */
static int read_member(int in, struct member *member) {
    static char attributes[MAX_ATTRIBUTES];
    struct header header;
    uint64_t size = 0;
    if (!read_header(in, &header)) return 0;
    if (header.type == ATTRIBUTES) {
        size = octal(header.size, sizeof header.size);
        if (size > sizeof attributes) refuse("attributes are too long");
        read_all(in, attributes, (size_t)size);
        skip_padding(in, size);
        if (!read_header(in, &header)) refuse("attributes of nothing");
    }
    if (header.type != REGULAR && header.type != FOLDER && header.type != LINK && header.type != PIPE)
        refuse("a member is no file, folder, symbolic link or pipe");
    fill_member(member, &header);
    apply_attributes(member, attributes, (size_t)size);
    if (member->type != REGULAR && member->size > 0) refuse("a member has content and is no file");
    return 1;
}

static int is_plain_name(const char *name) {
    return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strlen(name) <= NAME_MAX;
}

static int tree_called(const char *name) {
    for (int i = 0; i < tree_count; i++)
        if (strcmp(trees[i].name, name) == 0) return trees[i].fd;
    refuse("a name is in no tree");
}

/* A descriptor of the folder that holds `path`, and its last name; "." for a tree itself. Folders
 * are opened one after the other, and no link is followed, so that no path leads out of a tree. */
static int open_parent(char *path, const char **name) {
    size_t length = strlen(path);
    if (length > 0 && path[length - 1] == '/') path[length - 1] = 0; /* of folders */
    char *rest = strchr(path, '/');
    if (rest) *rest++ = 0;
    int folder = dup(tree_called(path));
    if (folder < 0) die("no descriptor");
    for (*name = "."; rest;) {
        char *next = strchr(rest, '/');
        if (next) *next++ = 0;
        if (!is_plain_name(rest)) refuse("a name leads elsewhere");
        *name = rest;
        rest = next;
        if (!rest) break;
        int inner = openat(folder, *name, FOLDER_FLAGS);
        if (inner < 0) die("cannot enter %s", *name);
        close(folder);
        folder = inner;
    }
    return folder;
}

/* O_EXCL: a duplicate name is refused, also where the earlier member is a link. */
static void unpack_file(int in, int folder, const char *name, const struct member *member) {
    static char buffer[65536];
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) die("cannot write %s", name);
    for (uint64_t left = member->size; left > 0;) {
        size_t part = left < sizeof buffer ? (size_t)left : sizeof buffer;
        read_all(in, buffer, part);
        write_all(fd, buffer, part);
        left -= part;
    }
    skip_padding(in, member->size);
    struct timespec times[2] = {{0, UTIME_NOW}, member->mtime};
    futimens(fd, times);
    close(fd);
}

static void unpack_member(int in, struct member *member, uid_t uid, gid_t gid) {
    const char *name;
    int folder = open_parent(member->path, &name), is_tree = strcmp(name, ".") == 0;
    mode_t special = (member->is_socket ? S_IFSOCK : S_IFIFO) | 0600;
    if (is_tree && member->type != FOLDER) refuse("a tree is no folder");
    if (member->type == REGULAR) unpack_file(in, folder, name, member);
    else if (member->type == LINK && symlinkat(member->target, folder, name) != 0) die("cannot make the link %s", name);
    else if (member->type == FOLDER && !is_tree && mkdirat(folder, name, 0700) != 0) die("cannot make %s", name);
    else if (member->type == PIPE && mknodat(folder, name, special, 0) != 0) die("cannot make %s", name);
    /* A member belongs to root or to the boxes' user, and to no other user. */
    if (member->uid != 0 || member->gid != 0) {
        if (member->uid != uid || member->gid != gid) refuse("a member belongs to a stranger");
        set_owner(folder, name, uid, gid);
    }
    if (member->type != LINK && !is_tree) set_mode(folder, name, member->mode);
    close(folder);
}

void unpack(int in, uid_t uid, gid_t gid) {
    static struct member member;
    uint64_t members = 0, total = 0;
    while (read_member(in, &member)) {
        if (++members > MAX_MEMBERS) refuse("it has too many members");
        if (member.size > MAX_TOTAL_SIZE - total) refuse("it is too large");
        total += member.size;
        unpack_member(in, &member, uid, gid);
    }
}
