/* Modes of slopbox, chosen by the first argument. Under the name `slop-run`, the program is the launcher. */
#include "privileged.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* check-paths PATH...: every part of these that exists is a folder and no link. A mount would follow a link that
 * set-up left in an image, such as to a folder of ours. */
static int check_paths_main(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        for (char *end = argv[i]; *end;) {
            struct stat information;
            end += strcspn(end + 1, "/") + 1;
            char rest = *end;
            *end = 0;
            int exists = lstat(argv[i], &information) == 0;
            errno = 0;
            if (exists && !S_ISDIR(information.st_mode)) die("%s is no folder", argv[i]);
            *end = rest;
        }
    return 0;
}

/* merge-output COMMAND: stderr goes to stdout, so that both are in the order in which they were written. */
static int merge_output_main(int argc, char **argv) {
    if (argc < 1) die("merge-output: no command");
    dup2(1, 2);
    execvp(argv[0], argv);
    die("cannot run %s", argv[0]);
}

/* id: the user and the group, as numbers; an image may know them by names only. */
static int id_main(int argc, char **argv) {
    (void)argc, (void)argv;
    return printf("%u %u\n", (unsigned)getuid(), (unsigned)getgid()) < 0;
}

/* kernel: the boot id of the kernel, which two kernels do not share; gVisor has none. */
static int kernel_main(int argc, char **argv) {
    char id[64] = "";
    (void)argc, (void)argv;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(id, sizeof id, file)) id[0] = 0;
    return printf("boot %s\n", id) < 0;
}

static const struct { const char *name; int (*main)(int argc, char **argv); } modes[] = {
    {"run", run_main},                   /* unprivileged: the launcher in the judge's box */
    {"serve", serve_main},               /* unprivileged: the spawner, first process of the subject's box */
    {"hold", hold_main},                 /* unprivileged: the place of a forked judge in its box */
    {"relay", relay_main},               /* unprivileged: takes calls for a subject's box of another kernel */
    {"reap", reap_main},                 /* unprivileged */
    {"merge-output", merge_output_main}, /* unprivileged */
    {"id", id_main},                     /* unprivileged */
    {"kernel", kernel_main},             /* unprivileged */
    {"show-filter", show_filter_main},   /* unprivileged */
    {"check-paths", check_paths_main},   /* root of a container without capabilities */
    {"count", count_main},               /* root of a container that may read everything */
    {"join-cgroups", join_cgroups_main}, /* the evaluator's user */
    {"box", box_main},                   /* root of the box of a template */
    {"open-paths", open_paths_main},     /* the host's root */
    {"init", init_main},                 /* root of the outer box, or of the judge's container */
    {"restrict", restrict_main},         /* like `init`, until it has dropped its privileges */
};

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    if (strcmp(slash ? slash + 1 : argv[0], LAUNCHER_NAME) == 0) return run_main(argc - 1, argv + 1);
    errno = 0;
    if (argc < 2) die("usage: slopbox MODE ...");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0) return modes[i].main(argc - 2, argv + 2);
    die("unknown mode %s", argv[1]);
}
