/* reap COMMAND: runs a command, and kills everything that it left, daemons included. For evaluations without boxes. */
#include "helper.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (argc < 1) die("reap: no command");
    sigset_t watched;
    sigemptyset(&watched);
    for (const int *number = (const int[]){SIGCHLD, SIGTERM, SIGINT, 0}; *number; number++) sigaddset(&watched, *number);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    /* Orphans become children of this process, so that no daemon escapes. This process ends with the evaluator. */
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
