/* The part of POSIX ustar and pax that travels between the evaluator and a container. */
#ifndef TAR_H
#define TAR_H
#include <limits.h>

#define BLOCK 512
#define RECORD (20 * BLOCK)
#define MAX_PATH_BYTES (1 << 17) /* 500 folders deep, with names of 255 bytes */
#define MAX_ATTRIBUTES (MAX_PATH_BYTES + 2 * PATH_MAX)
#define STATUS_NAME "exit-status"

enum type { REGULAR = '0', LINK = '2', FOLDER = '5', PIPE = '6', ATTRIBUTES = 'x' };

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, target[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

#endif
