/* Errors, signals and exit statuses of processes. */
#include "helper.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

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

/* A program that is started here must not inherit what this process blocks or ignores. */
void default_signals(void) {
    sigset_t empty;
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigemptyset(&empty);
    sigprocmask(SIG_SETMASK, &empty, NULL);
}

/* Returns a descriptor to read these signals from; they interrupt nothing from now on. A 0 ends the list. */
int open_signals(const int *numbers) {
    sigset_t watched;
    sigemptyset(&watched);
    for (; *numbers; numbers++) sigaddset(&watched, *numbers);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) die("no signalfd");
    return signals;
}

int status_to_exit(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
