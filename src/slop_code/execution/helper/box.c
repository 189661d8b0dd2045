/* box OPTION... -- COMMAND...: a box inside a box that bwrap has made. The options are those of bwrap that are used
 * here.
 *
 * `init` starts the judge's box and the subject's with these options; a template's child starts the outer box with
 * them. */
#include "privileged.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL_CAPABILITIES (~0ull)

#define MAX_STEPS 1024

struct box {
    int namespaces, own_cgroups, as_pid_1, disable_userns, step_count;
    unsigned uid, gid;
    unsigned long long capabilities;
    const char *hostname, *folder;
    char **steps[MAX_STEPS], **command;
};

static int proc = -1; /* /proc of the surrounding box: where it is this box's own, its first process may be hidden */

static void write_proc(const char *name, const char *text) {
    int fd = openat(proc, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) die("cannot write to /proc/%s", name);
    close(fd);
}

/* The user of this box is the only one that exists in it. */
static void map_user(unsigned inside_uid, unsigned inside_gid, unsigned uid, unsigned gid) {
    char map[64];
    snprintf(map, sizeof map, "%u %u 1\n", inside_uid, uid);
    write_proc("self/uid_map", map);
    write_proc("self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1\n", inside_gid, gid);
    write_proc("self/gid_map", map);
}

static unsigned long long capability(const char *name) {
    static const struct { const char *name; int number; } known[] = {{"CAP_SYS_ADMIN", CAP_SYS_ADMIN}, {"CAP_SETPCAP", CAP_SETPCAP}};
    if (strcmp(name, "ALL") == 0) return ALL_CAPABILITIES;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) return 1ull << known[i].number;
    errno = 0;
    die("box: unknown capability %s", name);
}

/* Takes an option that is no step in the box itself; returns how many words after its name it used, or -1. */
static int take_option(struct box *box, const char *name, char **words, int left) {
    static const struct { const char *name; int flag; } namespaces[] = {
        {"--unshare-user", CLONE_NEWUSER}, {"--unshare-pid", CLONE_NEWPID}, {"--unshare-ipc", CLONE_NEWIPC},
        {"--unshare-uts", CLONE_NEWUTS},   {"--unshare-net", CLONE_NEWNET},
    };
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
        if (strcmp(name, namespaces[i].name) == 0) return box->namespaces |= namespaces[i].flag, 0;
    if (strcmp(name, "--unshare-cgroup-try") == 0) return box->own_cgroups = 1, 0;
    if (strcmp(name, "--as-pid-1") == 0) return box->as_pid_1 = 1, 0;
    if (strcmp(name, "--disable-userns") == 0) return box->disable_userns = 1, 0;
    /* Every box has these. */
    if (strcmp(name, "--die-with-parent") == 0 || strcmp(name, "--new-session") == 0 || strcmp(name, "--clearenv") == 0) return 0;
    if (left < 1) return -1;
    if (strcmp(name, "--uid") == 0) return box->uid = (unsigned)atol(words[0]), 1;
    if (strcmp(name, "--gid") == 0) return box->gid = (unsigned)atol(words[0]), 1;
    if (strcmp(name, "--hostname") == 0) return box->hostname = words[0], 1;
    if (strcmp(name, "--chdir") == 0) return box->folder = words[0], 1;
    if (strcmp(name, "--cap-drop") == 0) return box->capabilities &= ~capability(words[0]), 1;
    if (strcmp(name, "--cap-add") == 0) return box->capabilities |= capability(words[0]), 1;
    return -1;
}

/* Variables are set in the box, in their order among the steps that make its root. */
static int step_words(const char *name) { return strcmp(name, "--setenv") == 0 ? 2 : root_step_words(name); }

static struct box parse_box(char **words) {
    struct box box = {.folder = "/", .namespaces = CLONE_NEWNS};
    int count = 0, i = 0;
    while (words[count]) count++;
    for (; i < count && strcmp(words[i], "--") != 0; i++) {
        int took = step_words(words[i]), left = count - i - 1;
        errno = 0;
        if (took >= 0 && box.step_count == MAX_STEPS) die("box: too many steps");
        if (took >= 0) box.steps[box.step_count++] = words + i;
        else took = take_option(&box, words[i], words + i + 1, left);
        if (took < 0 || took > left) die("box: %s does not fit here", words[i]);
        i += took;
    }
    errno = 0;
    if (i + 1 >= count) die("box: no command");
    box.command = words + i + 1;
    if (!(box.namespaces & CLONE_NEWUSER) || !(box.namespaces & CLONE_NEWPID)) die("box: no user or process namespace");
    return box;
}

/* Like fork(2), with namespaces of the box's own. Control groups come later, since the box enters some first. */
static pid_t clone_box(const struct box *box) {
    return (pid_t)syscall(SYS_clone, (unsigned long)(box->namespaces | SIGCHLD), NULL, NULL, NULL, NULL);
}

static void raise_loopback(void) {
    struct ifreq loopback = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &loopback) != 0) die("no loopback network");
    loopback.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &loopback) != 0) die("cannot raise the loopback network");
    close(fd);
}

/* A second user namespace, of which the first allows no other: the box can make no more, and none of its capabilities
 * count for the mounts of the first. */
static void enter_last_user_namespace(const struct box *box) {
    if (unshare(CLONE_NEWUSER) != 0) die("no user namespace");
    map_user(box->uid, box->gid, 0, 0);
    errno = 0;
    if (unshare(CLONE_NEWUSER) == 0) die("the box could make further user namespaces");
}

/* Programs that run in the box inherit what is kept. */
static void keep_capabilities(unsigned long long kept) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    for (int number = 0; number <= MAX_CAPABILITY; number++) { /* kernels have fewer */
        if (prctl(PR_CAPBSET_READ, number, 0, 0, 0) < 0) kept &= ~(1ull << number);
        else if (!(kept >> number & 1) && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) die("cannot drop a capability");
    }
    for (int i = 0; i < 2; i++) data[i].effective = data[i].permitted = data[i].inheritable = (uint32_t)(kept >> 32 * i);
    if (syscall(SYS_capset, &header, data) != 0) die("cannot drop capabilities");
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int number = 0; number <= MAX_CAPABILITY; number++)
        if (kept >> number & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0) != 0) die("cannot keep a capability");
}

static void build_root(const struct box *box) {
    begin_root();
    for (int i = 0; i < box->step_count; i++) {
        char **step = box->steps[i];
        if (strcmp(step[0], "--setenv") == 0) setenv(step[1], step[2], 1);
        else take_root_step(step[0], step + 1);
    }
    enter_root();
    if (chdir(box->folder) != 0) die("no folder %s", box->folder);
    setenv("PWD", box->folder, 1);
}

static void close_others(void) {
    for (long fd = 3, end = sysconf(_SC_OPEN_MAX); fd < end && syscall(SYS_close_range, 3u, ~0u, 0) != 0; fd++) close((int)fd);
}

/* The first process of the box ends with the command, and the kernel then ends all others. Programs of the box can see
 * it, so it keeps no capability and no descriptor. */
static void be_first_process(void) {
    pid_t command = fork();
    if (command < 0) die("cannot fork");
    if (command == 0) return;
    keep_capabilities(0);
    close_others();
    for (;;) {
        int status;
        pid_t pid = wait(&status);
        if (pid == command) _exit(status_to_exit(status));
        if (pid < 0 && errno != EINTR) _exit(FAILED);
    }
}

_Noreturn static void enter_box(const struct box *box, unsigned uid, unsigned gid) {
    mode_t mask = umask(022);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    clearenv();
    if (box->disable_userns) map_user(0, 0, uid, gid);
    else map_user(box->uid, box->gid, uid, gid);
    if (box->own_cgroups && unshare(CLONE_NEWCGROUP) != 0 && errno != EINVAL) die("no namespace of control groups");
    if (box->hostname && sethostname(box->hostname, strlen(box->hostname)) != 0) die("cannot set the host name");
    if (box->namespaces & CLONE_NEWNET) raise_loopback();
    if (box->disable_userns) write_proc("sys/user/max_user_namespaces", "1"); /* that of enter_last_user_namespace */
    build_root(box);
    if (box->disable_userns) enter_last_user_namespace(box);
    /* No set-user-ID program gives a capability back, and no program can type into the caller's terminal. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("cannot set no_new_privs");
    if (setsid() < 0) die("no session");
    umask(mask);
    if (!box->as_pid_1) be_first_process();
    keep_capabilities(box->capabilities);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* which a new user namespace clears */
    execv(box->command[0], box->command);
    die("cannot run %s", box->command[0]);
}

/* The process that waits for the box has nothing that the box could use. With an `oom_score`, the kernel kills it
 * before the first process of the box when memory runs out: its end is noticed at once, and ends the box. */
int run_box(char **words, const char *oom_score) {
    unsigned uid = geteuid(), gid = getegid();
    struct box box = parse_box(words);
    int status;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = clone_box(&box);
    if (pid < 0) die("no namespaces");
    if (pid == 0) enter_box(&box, uid, gid);
    if (oom_score) write_proc("self/oom_score_adj", oom_score);
    close_others();
    keep_capabilities(0);
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR) die("cannot wait for the box");
    return status_to_exit(status);
}

int box_main(int argc, char **argv) {
    (void)argc;
    leave_keyrings();
    return run_box(argv, NULL);
}
