/* Handover: files and folders of the tests folder that a test passes to the submission become visible to the subject.
 *
 * Test code, which decides the verdict, is never handed over: a subject can print its path where a test expects a name,
 * and the test may put that into its next call. The evaluator lists its files in the settings of the launcher.
 * A path in an argument, in an environment variable or as the working directory of a call is handed over. The launcher
 * copies it to a folder that the subject's box mounts read-only at the same path. It does not mount it, as it has no
 * privilege. */
#include "helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_REFUSALS 20 /* in one call */

/* pytest's own variables name the running test, which the subject must not know. */
int is_private(const char *variable) { return strncmp(variable, "PYTEST_", 7) == 0; }

static const char WHOLE_FOLDER[] = "it is the whole tests folder, which is never handed over";
static const char TEST_CODE[] = "it is test code: the tests load it, or it has the content of a file that they load";
static const char ASSUMED_CODE[] = "it is test code: a test computes the name of what it imports, so every .py file counts; "
                                   "`visible` in config.yaml exempts files";
static const char BYTECODE[] = "it is compiled code of the tests";

static const char *tests_folder;
static struct { char *path; const char *reason; dev_t device; ino_t inode; } *code;
static size_t code_count, code_known, refusals, withheld;
static char *refused[MAX_REFUSALS];
static int in_argument;

/* `is_assumed`: it is not known whether the tests load it. */
void add_test_code(char *relative, int is_assumed) {
    code = realloc(code, (code_count + 1) * sizeof *code);
    if (!code) die("no memory");
    code[code_count].path = relative;
    code[code_count++].reason = is_assumed ? ASSUMED_CODE : TEST_CODE;
}

/* NULL for all that is no test code.
 * Files are compared and not names, since a file may have several: hard links, and names that differ in case. */
static const char *reason_of_code(const struct stat *information) {
    char path[PATH_MAX];
    if (!S_ISREG(information->st_mode)) return NULL;
    for (; code_known < code_count; code_known++) {
        struct stat listed = {0};
        int length = snprintf(path, sizeof path, "%s/%s", tests_folder, code[code_known].path);
        if (length < (int)sizeof path) stat(path, &listed);
        code[code_known].device = listed.st_dev, code[code_known].inode = listed.st_ino;
    }
    for (size_t i = 0; i < code_count; i++)
        if (code[i].inode == information->st_ino && code[i].device == information->st_dev) return code[i].reason;
    return NULL;
}

static int is_bytecode(const char *path) {
    size_t length = strlen(path);
    return (length >= 4 && strcmp(path + length - 4, ".pyc") == 0) || strstr(path, "/__pycache__") != NULL;
}

/* Says on stderr what the subject does not see, and records it for the result; each path once in a call. For a folder
 * that only a variable or the working directory names, it does neither: such as PYTHONPATH, it may be the same in all
 * calls and meant for the tests, and tests compare what a call writes to stderr. */
static void refuse(const char *path, const char *reason, int is_named_file) {
    const char *relative = path[strlen(tests_folder)] ? path + strlen(tests_folder) + 1 : ".";
    char line[PATH_MAX + 256];
    withheld++;
    if (!in_argument && !is_named_file) return;
    for (size_t i = 0; i < refusals; i++)
        if (refused[i] && strcmp(refused[i], path) == 0) return;
    if (refusals == MAX_REFUSALS) return;
    refused[refusals++] = strdup(path);
    fprintf(stderr, "slop-code: not handed over: %s: %s\n", path, reason);
    /* One write for each, since calls of the same time append to the file, too. */
    int length = snprintf(line, sizeof line, "%s%c%s%c", relative, 0, reason, 0);
    int fd = open(REFUSED_PATH, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)length) != length) die("cannot record that %s was not handed over", path);
    close(fd);
}

/* The copy has another name until it is complete, so that the subject never sees half a file. Only launchers write to
 * the target folder, which the subject sees read-only, so no link can be in the way. */
static int copy_file(const char *from, const char *to) {
    char partial[PATH_MAX + 32], buffer[65536];
    ssize_t got = -1;
    snprintf(partial, sizeof partial, "%s.%d~", to, (int)getpid());
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int target = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct stat information;
    if (source >= 0 && target >= 0 && fstat(source, &information) == 0) {
        while ((got = read(source, buffer, sizeof buffer)) > 0)
            if (write(target, buffer, (size_t)got) != got) break;
        fchmod(target, information.st_mode & 0777);
    }
    if (source >= 0) close(source);
    if (target >= 0) close(target);
    if (got != 0) unlink(partial);
    return got == 0 && rename(partial, to) == 0;
}

/* Not done by cp(1), which the environment of a call (PATH, LD_PRELOAD) could change. Existing files are kept as they
 * are, since the subject may be reading them. Links in the tests folder are the author's, and are followed. */
static int copy(const char *from, const char *to) {
    struct stat information, there;
    if (stat(from, &information) != 0) return 0;
    if (is_bytecode(from)) return 1;
    const char *reason = reason_of_code(&information);
    if (reason) return refuse(from, reason, 0), 1;
    if (S_ISREG(information.st_mode)) return lstat(to, &there) == 0 || copy_file(from, to);
    if (!S_ISDIR(information.st_mode)) return 1;
    if (mkdir(to, 0755) != 0 && errno != EEXIST) return 0;
    DIR *folder = opendir(from);
    int whole = folder != NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char below[PATH_MAX], above[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        int fits = snprintf(below, sizeof below, "%s/%s", from, entry->d_name) < (int)sizeof below &&
                   snprintf(above, sizeof above, "%s/%s", to, entry->d_name) < (int)sizeof above;
        whole &= fits && copy(below, above);
    }
    if (folder) closedir(folder);
    return whole;
}

/* The path of the marker of a complete copy; 0 if the name is too long for a marker. A folder that exists without a
 * marker may hold only a file that was handed over before. A marker has content if files of the folder were withheld:
 * every call that names the folder in an argument says so. */
static int marker(char *path, size_t size, const char *relative) {
    int start = snprintf(path, size, DONE_PATH "/%s", relative) - (int)strlen(relative);
    for (char *slash = path + start; *slash; slash++)
        if (*slash == '/') *slash = '\\';
    return strlen(relative) <= NAME_MAX;
}

static void hand_over(const char *relative, const char *source) {
    char target[PATH_MAX], parent[PATH_MAX], done[2 * PATH_MAX];
    struct stat information;
    size_t before = withheld;
    int has_marker = marker(done, sizeof done, relative);
    if (snprintf(target, sizeof target, SHOWN_PATH "/%s", relative) >= (int)sizeof target) return;
    if (has_marker && stat(done, &information) == 0 && information.st_size == 0) return;
    const char *reason = stat(source, &information) == 0 ? reason_of_code(&information) : NULL;
    if (reason) {
        refuse(source, reason, 1);
        return;
    }
    snprintf(parent, sizeof parent, "%s", target);
    *strrchr(parent, '/') = 0;
    make_folders(parent, 0755);
    if (!copy(source, target)) die("cannot hand over %s", relative);
    int fd = has_marker ? open(done, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && withheld > before && write(fd, "withheld", 8) < 0) {}
    if (fd >= 0) close(fd);
}

/* The path as the kernel resolves it. Unlike realpath(3), the kernel follows no link below the folders that the subject
 * writes to, so a link there cannot lead to an expected output. */
static int resolve(const char *path, char *resolved, size_t size) {
    char self[64];
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return 0;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(self, resolved, size - 1);
    close(fd);
    if (length < 0) return 0;
    resolved[length] = 0;
    return 1;
}

/* Hands `path` over if it is inside the tests folder; returns 0 when it is not. */
static int hand_over_path(const char *path, const char *tests) {
    char resolved[PATH_MAX];
    size_t length = strlen(tests);
    if (!resolve(path, resolved, sizeof resolved) || strncmp(resolved, tests, length) != 0) return 0;
    if (resolved[length] != 0 && resolved[length] != '/') return 0;
    if (resolved[length] == 0) refuse(resolved, WHOLE_FOLDER, 0); /* it has the expected outputs */
    else if (is_bytecode(resolved)) refuse(resolved, BYTECODE, 1);
    else hand_over(resolved + length + 1, resolved);
    return 1;
}

/* Hands over the longest existing path wherever the text names the tests folder; a list or a sentence may continue
 * after the path. */
static void hand_over_text(const char *text, const char *tests) {
    char path[PATH_MAX];
    for (const char *match = strstr(text, tests); match; match = strstr(match + 1, tests)) {
        if (snprintf(path, sizeof path, "%s", match) >= (int)sizeof path) path[sizeof path - 1] = 0;
        while (strlen(path) >= strlen(tests) && !hand_over_path(path, tests)) {
            size_t end = strlen(path);
            while (end > 0 && !strchr(":;,'\" \t\n=)]}", path[end - 1])) end--;
            if (end == 0) break;
            path[end - 1] = 0;
        }
    }
}

void hand_over_call(char **argv, char **environment, const char *cwd, const char *tests) {
    tests_folder = tests;
    in_argument = 1; /* first, since a path that is also named elsewhere is refused */
    for (char **word = argv + 1; argv[0] && *word; word++) {
        const char *value = strchr(*word, '=');
        hand_over_text(*word, tests);
        if (**word != '/' && **word != '-') hand_over_path(*word, tests);
        if (value && value[1] && value[1] != '/') hand_over_path(value + 1, tests);
    }
    in_argument = 0;
    hand_over_text(cwd, tests);
    for (; *environment; environment++) {
        if (is_private(*environment) || strncmp(*environment, "SCBENCH_ASSET", 13) == 0) continue;
        hand_over_text(*environment, tests);
    }
}
