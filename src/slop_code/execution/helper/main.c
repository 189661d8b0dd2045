/* The modes that need no socket, and what all of them share. */
#include "slopbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no filter for this processor"
#endif

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif
#define SUPERVISOR 1
#define FORBIDS_LINKS 0x2000 /* as statfs(2) gives it back */

_Noreturn void die(const char *format, ...) {
    int error = errno;
    va_list arguments;
    va_start(arguments, format);
    fputs("slop-code: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (error) fprintf(stderr, ": %s", strerror(error));
    fputc('\n', stderr);
    exit(FAILED);
}

void drop_capabilities(long uid, long gid) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int cap = 0; cap <= 63; cap++) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    gid_t group = (gid_t)gid;
    if (gid >= 0 && (setgroups(1, &group) != 0 || setresgid(group, group, group) != 0)) die("cannot become group %ld", gid);
    if (uid >= 0 && setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) != 0) die("cannot become user %ld", uid);
    if (syscall(SYS_capset, &header, none) != 0) die("cannot drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("cannot set no_new_privs");
}

/* Keyrings belong to no namespace: without a session of its own a box would share the host's. */
void leave_keyrings(void) { syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); }

#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define IF_CALL(number, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, skipped, 0)

/* What no namespace holds back: keyrings, and sockets to the host of a virtual machine; new namespaces of users,
 * in which a process would have capabilities again; and the limits and the priority of the box's first process, which
 * has the submission's own user. A jump skips so many lines. */
void restrict_calls(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        IF_CALL(NATIVE_ARCH, 1),
        REFUSE(ENOSYS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 17, 0), /* x86_64's other numbering */
        IF_CALL(SYS_io_uring_setup, 16), /* what is asked for through it, no filter sees */
        IF_CALL(SYS_io_uring_enter, 15),
        IF_CALL(SYS_io_uring_register, 14),
        IF_CALL(SYS_keyctl, 13),
        IF_CALL(SYS_add_key, 12),
        IF_CALL(SYS_request_key, 11),
        IF_CALL(SYS_clone3, 10), /* its flags cannot be looked at; libraries then use clone */
        IF_CALL(SYS_socket, 10),
        IF_CALL(SYS_unshare, 13),
        IF_CALL(SYS_clone, 12),
        IF_CALL(SYS_prlimit64, 15),
        IF_CALL(SYS_sched_setaffinity, 14),
        IF_CALL(SYS_sched_setscheduler, 13),
        IF_CALL(SYS_sched_setparam, 12),
        IF_CALL(SYS_sched_setattr, 11),
        IF_CALL(SYS_setpriority, 14),
        ALLOW,
        REFUSE(ENOSYS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])), /* of socket: the family */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 1, 0),
        ALLOW,
        REFUSE(EAFNOSUPPORT),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])), /* of unshare, clone: flags */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 1, 0),
        ALLOW,
        REFUSE(EPERM),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])), /* of the others: the process */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SUPERVISOR, 1, 0),
        ALLOW,
        REFUSE(EPERM),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])), /* of setpriority: whose, and then who */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PRIO_USER, 3, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SUPERVISOR, 1, 0),
        ALLOW,
        REFUSE(EPERM),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) die("cannot restrict system calls");
}

void default_signals(void) {
    sigset_t empty;
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigemptyset(&empty);
    sigprocmask(SIG_SETMASK, &empty, NULL);
}

int status_to_exit(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void lower(int resource, const char *value) {
    rlim_t wanted = strtoull(value, NULL, 10);
    struct rlimit limit;
    if (wanted > 0 && getrlimit(resource, &limit) == 0 && wanted < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max = wanted;
        setrlimit(resource, &limit);
    }
}

/* seal BYTES PROCESSES [--user UID GID] [--chdir PATH] [--clearenv] [--setenv NAME VALUE]... PATH... -- COMMAND: no file grows
 * beyond BYTES, no more PROCESSES than that (0: any number), links below the paths are never followed again, and
 * no capability is left. */
static int seal_main(int argc, char **argv) {
    int i = 2;
    long uid = -1, gid = -1;
    if (argc < 4) die("seal: no command");
    lower(RLIMIT_FSIZE, argv[0]);
    lower(RLIMIT_NPROC, argv[1]);
    for (; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2]; i++) {
        if (strcmp(argv[i], "--user") == 0 && i + 2 < argc) uid = atol(argv[i + 1]), gid = atol(argv[i + 2]), i += 2;
        else if (strcmp(argv[i], "--clearenv") == 0) clearenv();
        else if (strcmp(argv[i], "--chdir") == 0 && i + 1 < argc) {
            if (chdir(argv[++i]) != 0) die("no folder %s", argv[i]);
        }
        else if (strcmp(argv[i], "--setenv") == 0 && i + 2 < argc) setenv(argv[i + 1], argv[i + 2], 1), i += 2;
        else die("seal: %s does not fit here", argv[i]);
    }
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSYMFOLLOW | MS_NOSUID | MS_NODEV;
        struct statfs now;
        if (mount(NULL, argv[i], NULL, flags, NULL) != 0) die("cannot forbid links below %s", argv[i]);
        /* Before Linux 5.10 the flag is taken and ignored. */
        if (statfs(argv[i], &now) != 0 || !(now.f_flags & FORBIDS_LINKS)) die("this kernel cannot forbid links below %s", argv[i]);
    }
    if (i + 1 >= argc) die("seal: no command");
    drop_capabilities(uid, gid);
    restrict_calls();
    execvp(argv[i + 1], argv + i + 1);
    die("cannot run %s", argv[i + 1]);
}

/* plain PATH...: every part of these that is there is a folder and no link. */
static int plain_main(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        for (char *end = argv[i]; *end;) {
            struct stat information;
            end += strcspn(end + 1, "/") + 1;
            char rest = *end;
            *end = 0;
            int is_there = lstat(argv[i], &information) == 0;
            errno = 0;
            if (is_there && !S_ISDIR(information.st_mode)) die("%s is no folder", argv[i]);
            *end = rest;
        }
    return 0;
}

/* join FILE... -- COMMAND: enter the control groups whose `cgroup.procs` these are. */
static int join_main(int argc, char **argv) {
    int count = 0;
    while (count < argc && strcmp(argv[count], "--") != 0) count++;
    if (count + 1 >= argc) die("join: no command");
    join_groups(argv, count);
    leave_keyrings();
    execv(argv[count + 1], argv + count + 1);
    die("cannot run %s", argv[count + 1]);
}

/* merge COMMAND: what it says to stderr stands among what it says to stdout, in the order it was said. */
static int merge_main(int argc, char **argv) {
    if (argc < 1) die("merge: no command");
    dup2(1, 2);
    execvp(argv[0], argv);
    die("cannot run %s", argv[0]);
}

static int kill_children(void) {
    char path[64], buffer[65536];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t length = fread(buffer, 1, sizeof buffer - 1, file);
    fclose(file);
    buffer[length] = 0;
    int killed = 0;
    for (char *word = strtok(buffer, " "); word; word = strtok(NULL, " "), killed++) kill(atoi(word), SIGKILL);
    return killed;
}

/* reap COMMAND: whatever it leaves behind, daemons included, goes when it does. */
static int reap_main(int argc, char **argv) {
    if (argc < 1) die("reap: no command");
    sigset_t watched;
    sigemptyset(&watched);
    for (const int *number = (const int[]){SIGCHLD, SIGTERM, SIGINT, 0}; *number; number++) sigaddset(&watched, *number);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    pid_t main_child = fork();
    if (main_child < 0) die("cannot fork");
    if (main_child == 0) {
        default_signals();
        setpgid(0, 0);
        execvp(argv[0], argv);
        die("cannot run %s", argv[0]);
    }
    int status = 0, result = 128 + SIGTERM;
    for (int ended = 0; !ended;) {
        ended = sigwaitinfo(&watched, NULL) != SIGCHLD;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            if (pid == main_child) result = status_to_exit(status), ended = 1;
    }
    while (kill_children() > 0) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        usleep(1000);
    }
    return result;
}

int main(int argc, char **argv) {
    const char *name = strrchr(argv[0], '/');
    name = name ? name + 1 : argv[0];
    if (strcmp(name, "run") == 0) return run_main(argc - 1, argv + 1);
    if (argc < 2) die("usage: slopbox pair|serve|seal|join|reap|run|id|measure|merge|plain ...");
    argc -= 2, argv += 2;
    if (strcmp(argv[-1], "pair") == 0) return pair_main(argc, argv);
    if (strcmp(argv[-1], "serve") == 0) return serve_main(argc, argv);
    if (strcmp(argv[-1], "seal") == 0) return seal_main(argc, argv);
    if (strcmp(argv[-1], "join") == 0) return join_main(argc, argv);
    if (strcmp(argv[-1], "reap") == 0) return reap_main(argc, argv);
    if (strcmp(argv[-1], "run") == 0) return run_main(argc, argv);
    if (strcmp(argv[-1], "plain") == 0) return plain_main(argc, argv);
    if (strcmp(argv[-1], "merge") == 0) return merge_main(argc, argv);
    if (strcmp(argv[-1], "measure") == 0) return measure_main(argc, argv);
    if (strcmp(argv[-1], "id") == 0) return printf("%u %u\n", (unsigned)getuid(), (unsigned)getgid()) < 0;
    die("unknown mode %s", argv[-1]);
}
