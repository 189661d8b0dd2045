/* slopbox: the one native helper. `pair` opens both boxes, `serve` and `run` start the
 * subject's processes across them, `seal` closes the judge's box, `join` enters control groups, `reap` cleans up without boxes. */
#ifndef SLOPBOX_H
#define SLOPBOX_H
#define _GNU_SOURCE

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SOCKET_PATH "/slop/socket"
#define CONF_PATH "/slop/conf"
#define SHOWN_PATH "/slop/shown"
#define DONE_PATH "/slop/done"

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
void drop_capabilities(void);
void default_signals(void);
void make_folders(const char *path, mode_t mode);
int status_to_exit(int status);
void join_groups(char **files, int count);
void leave_keyrings(void);
void restrict_calls(void);

/* pytest's own variables name the test that is running: not the subject's business. */
int is_private(const char *variable);
void show_call(char **argv, char **environment, const char *cwd, const char *tests);

int pair_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int run_main(int argc, char **argv);

#endif
