/* What a test hands over by path becomes visible to the subject: a file or folder of the tests
 * folder that stands in an argument, in a variable or as the working directory is copied to
 * the folder that the subject's box shows, read-only, at the same place. */
#include "slopbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void copy(const char *from, const char *to) {
    pid_t pid = fork();
    if (pid == 0) {
        default_signals();
        execlp("cp", "cp", "-RLn", "--", from, to, (char *)NULL);
        _exit(NOT_FOUND);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
}

/* Where it is noted that something was copied whole; a file of a folder may have come alone before it. */
static int marker(char *path, size_t size, const char *relative) {
    int start = snprintf(path, size, DONE_PATH "/%s", relative) - (int)strlen(relative);
    for (char *slash = path + start; *slash; slash++)
        if (*slash == '/') *slash = '\\';
    return strlen(relative) <= NAME_MAX;
}

static void show(const char *relative, const char *source, const struct stat *information) {
    char target[PATH_MAX], other[PATH_MAX + 32], done[2 * PATH_MAX];
    int notable = marker(done, sizeof done, relative);
    if (snprintf(target, sizeof target, SHOWN_PATH "/%s", relative) >= (int)sizeof target) return;
    if (notable && access(done, F_OK) == 0) return;
    snprintf(other, sizeof other, "%s", target);
    *strrchr(other, '/') = 0;
    make_folders(other, 0755);
    if (S_ISDIR(information->st_mode)) {
        snprintf(other, sizeof other, "%s/.", source);
        make_folders(target, 0755);
        copy(other, target);
    } else if (S_ISREG(information->st_mode)) {
        snprintf(other, sizeof other, "%s.%d~", target, (int)getpid());
        copy(source, other);
        rename(other, target);
    }
    int fd = notable ? open(done, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) close(fd);
}

/* `path` is absolute and inside the tests folder when this shows anything. */
static int consider(const char *path, const char *tests) {
    char resolved[PATH_MAX];
    struct stat information;
    size_t length = strlen(tests);
    if (!realpath(path, resolved) || strncmp(resolved, tests, length) != 0 || stat(resolved, &information) != 0) return 0;
    if (resolved[length] == 0) return 1; /* the whole folder is never shown */
    if (resolved[length] != '/') return 0;
    show(resolved + length + 1, resolved, &information);
    return 1;
}

/* The longest existing path that begins here; a list or a sentence may go on behind it. */
static void consider_text(const char *text, const char *tests) {
    char path[PATH_MAX];
    for (const char *found = strstr(text, tests); found; found = strstr(found + 1, tests)) {
        if (snprintf(path, sizeof path, "%s", found) >= (int)sizeof path) path[sizeof path - 1] = 0;
        while (strlen(path) >= strlen(tests) && !consider(path, tests)) {
            size_t end = strlen(path);
            while (end > 0 && !strchr(":;,'\" \t\n=)]}", path[end - 1])) end--;
            if (end == 0) break;
            path[end - 1] = 0;
        }
    }
}

void show_call(char **argv, char **environment, const char *cwd, const char *tests) {
    consider_text(cwd, tests);
    for (char **word = argv + 1; argv[0] && *word; word++) {
        const char *value = strchr(*word, '=');
        consider_text(*word, tests);
        if (**word != '/' && **word != '-') consider(*word, tests);
        if (value && value[1] && value[1] != '/') consider(value + 1, tests);
    }
    for (; *environment; environment++) {
        if (strncmp(*environment, "PYTEST_", 7) == 0 || strncmp(*environment, "SCBENCH_ASSET", 13) == 0) continue;
        consider_text(*environment, tests);
    }
}
