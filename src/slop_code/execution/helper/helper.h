/* slopbox, the native helper: one static program with several modes (see main.c).
 *
 * All files include this header. Privileged functions are declared in privileged.h, which the files that run without
 * privileges (launcher, handover, spawner, relay, usage, reaper, hold) do not include. */
#ifndef HELPER_H
#define HELPER_H
#define _GNU_SOURCE

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#define LAUNCHER_NAME "slop-run"
#define SOCKET_PATH "/slop/gate/socket"
#define CONF_PATH "/slop/call/conf"
#define SHOWN_PATH "/slop/shown"
#define DONE_PATH "/slop/call/done"
#define REFUSED_PATH "/slop/call/refused/log"

#define REQUEST_TIMEOUT_S 5 /* a client that connects and sends nothing must not block all others for ever */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define MAGIC 0x534c4f50u
#define REQUEST_FDS 4 /* stdin, stdout, stderr, and a memory file: cwd, argv, environment */

/* Request of a launcher to the spawner: a packet with REQUEST_FDS descriptors. */
struct request {
    uint32_t magic;
    uint32_t argc;
    uint32_t envc;
    uint32_t size;
};

/* Limits that can strike. The judge's plugin has names for these numbers. */
enum limit { NO_LIMIT, MEMORY_LIMIT, PROCESS_LIMIT, DISK_LIMIT, OUTPUT_LIMIT, OUT_OF_MEMORY };

/* The spawner's answer when the call has ended; before that the launcher may send signal numbers (int32_t). */
struct reply {
    int32_t status; /* as wait(2) gives it */
    uint32_t limit; /* enum limit: the limit for which the spawner ended the call */
};

/* A packet with USAGE_MAGIC alone asks for what the box used since the last such packet. */
#define USAGE_MAGIC 0x55534547u
/* A packet with END_MAGIC alone ends all processes of the box. The spawner closes the connection when they are gone. */
#define END_MAGIC 0x454e4421u
/* A packet with STRUCK_MAGIC and a struct struck: a launcher ended its call for a limit. The spawner closes the
 * connection when it is recorded. */
#define STRUCK_MAGIC 0x5354524bu
#define CALL_TEXT 248
#define MAX_STRUCK 16
#define UNKNOWN_WAIT UINT64_MAX

struct struck {
    uint32_t limit, size; /* size: bytes of the text */
    char call[CALL_TEXT]; /* words of the command, each ended by 0; empty if no call was running */
};

struct notice {
    uint32_t magic;
    struct struck struck;
};

/* The answer, without the unused entries of `struck`. */
struct usage {
    uint64_t cpu_ns, wait_ns; /* time that the box's processes ran, and waited for a processor, or UNKNOWN_WAIT */
    uint64_t memory, processes, written, disk;
    uint64_t struck_count;
    struct struck struck[MAX_STRUCK];
};

/* Exit statuses for failures of the helper itself; otherwise it exits like the command that it runs. */
enum { WORKSPACE_TOO_LARGE = 123, SUBJECT_BOX_ENDED = 124, FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

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

/* privileges.c */
void drop_privileges(long uid, long gid);

/* syscall_filter.c */
void restrict_calls(void);
int show_filter_main(int argc, char **argv);

/* handover.c */
int is_private(const char *variable);
void add_test_code(char *relative, int is_assumed);
void hand_over_call(char **argv, char **environment, const char *cwd, const char *tests);

/* resource_watch.c */
struct totals {
    uint64_t cpu_ns, memory, processes, written;
};
struct totals measure_living(void);
uint64_t divided_memory(void);
struct totals measure_ended(pid_t pid);
void send_account(int socket);
void keep_account(pid_t pid, int socket);
uint64_t take_wait(void);
uint64_t take_seen_cpu(void);
uint64_t out_of_memory_kills(void);
int group_reached_memory_limit(void);
uint64_t peak_mapped_files(void);

/* usage.c */
pid_t reap_child(int options, int *status);
enum limit exceeded_limit(uint64_t max_memory, uint64_t max_processes);
void count_calls(int running);
void record_struck(enum limit limit, const char *call, size_t size);
int killed_for_memory(int status);
int limit_killed(uint64_t max_memory);
int peak_exceeded(uint64_t max_memory);
void watch_folders(char **folders);
int disk_was_filled(void);
void answer_usage(int fd);

/* relay_ends.c: calls for a subject's box that has another kernel. */
int loopback_socket(const char *port, int listens);
int start_relay_thread(int connection); /* returns a socket that sends the connection of each call */
int relay_main(int argc, char **argv);

int run_main(int argc, char **argv);   /* launcher.c */
int serve_main(int argc, char **argv); /* spawner.c */
int reap_main(int argc, char **argv);  /* reaper.c */
int hold_main(int argc, char **argv);  /* hold.c */

#endif
