/* Dropping privileges: capabilities, users, links, keyrings, control groups. */
#include "privileged.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A negative `uid` or `gid` is not changed. The order matters: the bounding set and the group can only be changed while
 * there are still capabilities, and setresuid gives back nothing that was dropped before. */
void drop_privileges(long uid, long gid) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    /* Ambient capabilities survive execve. Kernels that refuse this call (before 4.3) have none. */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    /* With an empty bounding set no program with file capabilities gives any back. Kernels have fewer capabilities than
     * are tried here. */
    for (int capability = 0; capability <= MAX_CAPABILITY; capability++) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    gid_t group = (gid_t)gid;
    /* setgroups: root's supplementary groups would stay otherwise. */
    if (gid >= 0 && (setgroups(1, &group) != 0 || setresgid(group, group, group) != 0)) die("cannot become group %ld", gid);
    if (uid >= 0 && setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) != 0) die("cannot become user %ld", uid);
    if (syscall(SYS_capset, &header, none) != 0) die("cannot drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("cannot set no_new_privs");
}

/* Keyrings belong to no namespace: without a session of its own a box would share the host's. The
 * call fails where there are no keyrings; the filter of system calls keeps a submission from using any. */
void leave_keyrings(void) { syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); }

/* "0" means the process that writes it: this process enters the groups before it starts anything. */
void join_cgroups(char **files, int count) {
    for (int i = 0; i < count; i++) {
        int fd = open(files[i], O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1) die("cannot enter the control group %s", files[i]);
        close(fd);
    }
}

/* Lowering a limit cannot fail. */
static void lower_limit(int resource, const char *value) {
    rlim_t wanted = strtoull(value, NULL, 10);
    struct rlimit limit;
    if (wanted > 0 && getrlimit(resource, &limit) == 0 && wanted < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max = wanted;
        setrlimit(resource, &limit);
    }
}

/* The subject can plant a link in a folder that it shares with the judge, for example its own report as a link to the
 * expected output. After this call the kernel follows no link below `path` for any process in this mount namespace. */
static void forbid_links(const char *path) {
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSYMFOLLOW | SAFE_FLAGS;
    struct statfs now;
    if (mount(NULL, path, NULL, flags, NULL) != 0) die("cannot forbid links below %s", path);
    /* Before Linux 5.10 the kernel accepts the flag and ignores it. */
    if (statfs(path, &now) != 0 || !(now.f_flags & STATFS_NOSYMFOLLOW)) die("this kernel cannot forbid links below %s", path);
}

/* restrict BYTES PROCESSES [--user UID GID] [--chdir PATH] [--clearenv] [--setenv NAME VALUE]... [--opened FD FOLDER]
 *   PATH... -- COMMAND
 *
 * Runs a command without any capability, under the filter of system calls: no file grows beyond BYTES, there are no
 * more than PROCESSES (0: any number), and no link below the paths is followed. --opened: a pipe that gets a byte when
 * the box is complete, and that the command does not have, so that nothing else can write or withhold it. Only then the
 * command's folder is entered: an earlier command may have closed it, which is no failure of the box. */
int restrict_main(int argc, char **argv) {
    int i = 2;
    int opened = -1;
    const char *folder = NULL;
    long uid = -1, gid = -1;
    if (argc < 4) die("restrict: no command");
    lower_limit(RLIMIT_FSIZE, argv[0]);
    lower_limit(RLIMIT_NPROC, argv[1]);
    for (; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2]; i++) {
        if (strcmp(argv[i], "--user") == 0 && i + 2 < argc) uid = atol(argv[i + 1]), gid = atol(argv[i + 2]), i += 2;
        else if (strcmp(argv[i], "--clearenv") == 0) clearenv();
        else if (strcmp(argv[i], "--chdir") == 0 && i + 1 < argc) {
            if (chdir(argv[++i]) != 0) die("no folder %s", argv[i]);
        }
        else if (strcmp(argv[i], "--opened") == 0 && i + 2 < argc) opened = atoi(argv[i + 1]), folder = argv[i + 2], i += 2;
        else if (strcmp(argv[i], "--setenv") == 0 && i + 2 < argc) setenv(argv[i + 1], argv[i + 2], 1), i += 2;
        else die("restrict: %s does not fit here", argv[i]);
    }
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) forbid_links(argv[i]);
    if (i + 1 >= argc) die("restrict: no command");
    drop_privileges(uid, gid);
    restrict_calls();
    if (opened >= 0 && (write(opened, "", 1) != 1 || close(opened) != 0)) die("cannot say that the box is open");
    if (folder && chdir(folder) != 0) die("cannot enter %s", folder);
    execvp(argv[i + 1], argv + i + 1);
    die("cannot run %s", argv[i + 1]);
}

/* join-cgroups FILE... -- COMMAND: enter the control groups whose `cgroup.procs` these are, then run the command. */
int join_cgroups_main(int argc, char **argv) {
    int count = 0;
    while (count < argc && strcmp(argv[count], "--") != 0) count++;
    if (count + 1 >= argc) die("join-cgroups: no command");
    join_cgroups(argv, count);
    leave_keyrings();
    execv(argv[count + 1], argv + count + 1);
    die("cannot run %s", argv[count + 1]);
}
