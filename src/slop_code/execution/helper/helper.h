/* slopbox, the native helper: one static program with several modes (see main.c).
 *
 * All files include this header. Privileged functions are declared in privileged.h, which the files that run without
 * privileges (launcher, handover, spawner, resource_watch, reaper) do not include. */
#ifndef HELPER_H
#define HELPER_H
#define _GNU_SOURCE

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LAUNCHER_NAME "slop-run"
#define SOCKET_PATH "/slop/gate/socket"
#define CONF_PATH "/slop/call/conf"
#define SHOWN_PATH "/slop/shown"
#define DONE_PATH "/slop/call/done"

#define MAGIC 0x534c4f50u
#define REQUEST_FDS 4 /* stdin, stdout, stderr, and a memory file: cwd, argv, environment */

/* Request of a launcher to the spawner: a packet with REQUEST_FDS descriptors. */
struct request {
    uint32_t magic;
    uint32_t argc;
    uint32_t envc;
    uint32_t size;
};

enum reason { ENDED_ITSELF, TOO_MUCH_MEMORY, TOO_MANY_PROCESSES };

/* The spawner's answer when the call has ended; before that the launcher may send signal numbers (int32_t). */
struct reply {
    int32_t status; /* as wait(2) gives it */
    uint32_t reason;
};

/* Exit statuses for failures of the helper itself; otherwise it exits like the command that it runs. */
enum { FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127, SUBJECT_BOX_ENDED = 124 };

/* process.c */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void default_signals(void);
int open_signals(const int *numbers);
int status_to_exit(int status);

/* descriptors.c */
void make_folders(const char *path, mode_t mode);
void write_all(int fd, const void *data, size_t length);
void read_all(int fd, void *data, size_t length);
int send_descriptors(int socket, const void *packet, size_t size, const int *descriptors, int count);
ssize_t receive_descriptors(int socket, void *packet, size_t size, int *descriptors, int count);
int connect_to(const char *path);

/* syscall_filter.c */
void restrict_calls(void);
int show_filter_main(int argc, char **argv);

/* handover.c */
int is_private(const char *variable);
void hand_over_call(char **argv, char **environment, const char *cwd, const char *tests);

/* resource_watch.c */
enum reason exceeded_limit(unsigned long long max_memory, unsigned long long max_processes);

int run_main(int argc, char **argv);   /* launcher.c */
int serve_main(int argc, char **argv); /* spawner.c */
int reap_main(int argc, char **argv);  /* reaper.c */

#endif
