/* reap PARENT COMMAND: runs a command, and kills everything that it left, daemons included, when it ends or PARENT does.
 * Boxes on the host, and evaluations without boxes, are started by it: until bwrap has bound its processes to each
 * other and to its caller, nothing else would end them. */
#include "helper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Soft limits of the shell that started the evaluator must not decide verdicts. These are fixed; the others become the
 * hard limits. low_limits.py refuses hard limits that are too low. */
static void set_soft_limits(void) {
    static const struct { int resource; rlim_t soft; } fixed[] = {
        {RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 4096}, {RLIMIT_STACK, 8 << 20},
    };
    struct rlimit limit;
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        if (getrlimit(resource, &limit) != 0) continue;
        limit.rlim_cur = limit.rlim_max;
        for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
            if (fixed[i].resource == resource && fixed[i].soft < limit.rlim_max) limit.rlim_cur = fixed[i].soft;
        setrlimit(resource, &limit);
    }
}

static int kill_children(void) {
    char path[64], buffer[65536];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t length = fread(buffer, 1, sizeof buffer - 1, file);
    fclose(file);
    buffer[length] = 0;
    char *last = strrchr(buffer, ' ');
    if (length == sizeof buffer - 1 && last) *last = 0; /* half a number may follow */
    int killed = 0;
    for (char *word = strtok(buffer, " "); word; word = strtok(NULL, " "))
        killed += kill(atoi(word), SIGKILL) == 0; /* a set-user-ID program of another user cannot be killed */
    return killed;
}

int reap_main(int argc, char **argv) {
    if (argc < 2) die("reap: no command");
    set_soft_limits();
    signal(SIGCHLD, SIG_DFL); /* if the caller ignores it, no end of a child can be waited for */
    sigset_t watched;
    sigemptyset(&watched);
    for (const int *number = (const int[]){SIGCHLD, SIGTERM, SIGINT, 0}; *number; number++) sigaddset(&watched, *number);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    /* Orphans become children of this process, so that no daemon escapes. This process ends with the evaluator. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    errno = 0;
    if (getppid() != atoi(argv[0])) die("reap: the parent has ended");
    pid_t reaper = getpid(), main_child = fork();
    if (main_child < 0) die("cannot fork");
    if (main_child == 0) {
        default_signals();
        setpgid(0, 0);
        /* Also where this process is killed before bwrap has bound itself to it. */
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        errno = 0;
        if (getppid() != reaper) die("reap: ended");
        execvp(argv[1], argv + 1);
        die("cannot run %s", argv[1]);
    }
    int status = 0, result = 128 + SIGTERM;
    for (int ended = 0; !ended;) {
        int number = sigwaitinfo(&watched, NULL);
        ended = number > 0 && number != SIGCHLD; /* -1: this process was stopped and continued */
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            if (pid == main_child) result = status_to_exit(status), ended = 1;
    }
    /* Children of killed processes become children of this process, so repeat until there are none. */
    while (kill_children() > 0) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        usleep(1000);
    }
    return result;
}
