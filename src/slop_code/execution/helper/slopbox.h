/* slopbox: the one native helper. `pair` opens the boxes or one container's part of them, `serve` and `run` start
 * the subject's processes across them, `seal` closes the judge's box, `join` enters control groups, `reap` cleans
 * up without boxes, `id` says who it is, `measure` how large a folder
 * is, `plain` whether paths have links in them, and `merge` brings a command's two outputs together. */
#ifndef SLOPBOX_H
#define SLOPBOX_H
#define _GNU_SOURCE

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SOCKET_PATH "/slop/gate/socket"
#define CONF_PATH "/slop/call/conf"
#define SHOWN_PATH "/slop/shown"
#define DONE_PATH "/slop/call/done"

#define MAGIC 0x534c4f50u
#define REQUEST_FDS 4 /* stdin, stdout, stderr, and a memory file: cwd, argv, environment */

/* What a launcher asks for: one packet with REQUEST_FDS descriptors. */
struct request {
    uint32_t magic;
    uint32_t argc;
    uint32_t envc;
    uint32_t size;
};

enum reason { ENDED_ITSELF, TOO_MUCH_MEMORY, TOO_MANY_PROCESSES };

/* What it is told in the end; before that it may send signal numbers (int32_t). */
struct reply {
    int32_t status; /* as wait(2) gives it */
    uint32_t reason;
};

/* Exit statuses of the helper itself, apart from those of what it runs. */
enum { FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127, SUBJECT_BOX_ENDED = 124 };

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void drop_capabilities(long uid, long gid); /* negative: stay who one is */
void default_signals(void);
void make_folders(const char *path, mode_t mode);
void write_all(int fd, const void *data, size_t length);
void read_all(int fd, void *data, size_t length);
int status_to_exit(int status);
int send_descriptors(int socket, const void *packet, size_t size, const int *descriptors, int count);
ssize_t receive_descriptors(int socket, void *packet, size_t size, int *descriptors, int count);
int connect_to(const char *path);
void join_groups(char **files, int count);
void leave_keyrings(void);
void restrict_calls(void);

/* pytest's own variables name the test that is running: not the subject's business. */
int is_private(const char *variable);
void show_call(char **argv, char **environment, const char *cwd, const char *tests);

/* What was copied: `checksum` tells one tree from another, in whatever order they are walked. */
struct tally { unsigned long long entries, bytes, checksum; };
extern struct tally copied;

void copy_tree(const char *source, const char *target, uid_t uid, gid_t gid);
void set_owner(int folder, const char *name, uid_t uid, gid_t gid);
void set_mode(int folder, const char *name, mode_t mode);

/* Members of an archive are named TREE/PATH; `add_tree` says which folder a tree is. */
void add_tree(const char *name, const char *path);
void unpack(int in, uid_t uid, gid_t gid);
void pack(int out, const char *name, const char *source);
void pack_end(int out, int status);

int measure_main(int argc, char **argv);
int pair_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int run_main(int argc, char **argv);

#endif
