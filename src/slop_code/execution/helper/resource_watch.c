/* Resource watch: what the processes of the subject's box use, read from its own /proc. It works everywhere; control
 * groups work only where root makes them. Process 1 is the spawner itself, and is not counted. */
#include "helper.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long long amount;

#define MAX_TASKS 4096 /* a power of two, far above the process limits that are in use */

/* Tasks (threads) and how long each has run and has waited for a processor, by the lower bits of its number; for the
 * first task of a process also what was seen of the process: its highest memory, and the bytes that it wrote. A task
 * that takes the place of another begins anew, which loses no more than what was seen of it before. */
static struct { int number; amount ran, wait, memory, written; } tasks[MAX_TASKS];

/* Processes of calls, and the sockets through which they sent an account of theirs. */
static struct account { pid_t pid; int socket; } accounts[MAX_TASKS];
static int account_count;
static amount seen_cpu, waited, mapped_files;
static int is_unmeasured, is_undivided;

/* Reads a file of /proc into `text`; 0 if the process is gone. */
static int read_file(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(text, 1, size - 1, file) : 0;
    if (file) fclose(file);
    text[got] = 0;
    return got > 0;
}

/* Memory files among the open files in a folder of descriptors. 0: no file is open, or the folder cannot be read. */
static int add_memory_files(const char *descriptors, amount *total) {
    char path[600], target[64];
    int count = 0;
    DIR *folder = opendir(descriptors);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat information;
        if (entry->d_name[0] == '.') continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", descriptors, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target);
        if (length > 7 && strncmp(target, "/memfd:", 7) == 0 && stat(path, &information) == 0)
            *total += (amount)information.st_blocks * 512;
    }
    if (folder) closedir(folder);
    return count;
}

/* Memory files that a process holds open: what is written to them is in no process's memory map. The first thread of
 * the process may have ended: it has no open files then, the other threads have. */
static amount memory_files_of(const char *pid, amount threads) {
    char path[300];
    amount total = 0;
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    if (add_memory_files(path, &total) || threads < 2) return total;
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%s/task/%.20s/fd", pid, entry->d_name);
        if (add_memory_files(path, &total)) break;
    }
    if (folder) closedir(folder);
    return total;
}

/* Segments of System V shared memory in this box: they stay when no process has them attached. */
static amount shared_segments(void) {
    char line[512];
    amount total = 0, bytes;
    FILE *file = fopen("/proc/sysvipc/shm", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%*d %*d %*o %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &bytes) == 1) total += bytes;
    if (file) fclose(file);
    return total;
}

/* Bytes that are the process's alone, in memory or swapped out, or shared memory, and of the tables of its pages, which
 * a large mapping of nothing fills. Files that it maps are not its own, but the kernel's peak of a process has them, so
 * their size is kept. A thread counts as a process, as it does for the kernel. */
static struct memory { amount own, page_tables, threads; } read_status(const char *path) {
    char line[256];
    struct memory seen = {0};
    amount number, resident = 0;
    is_undivided = 1;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %llu", &number) == 1 || sscanf(line, "RssShmem: %llu", &number) == 1) seen.own += number << 10, is_undivided = 0;
        else if (sscanf(line, "VmSwap: %llu", &number) == 1) seen.own += number << 10;
        else if (sscanf(line, "VmPTE: %llu", &number) == 1) seen.page_tables = number << 10;
        else if (sscanf(line, "RssFile: %llu", &number) == 1) mapped_files = number << 10 > mapped_files ? number << 10 : mapped_files;
        else if (sscanf(line, "VmRSS: %llu", &number) == 1) resident = number << 10;
        else if (sscanf(line, "Threads: %llu", &number) == 1) seen.threads = number;
    if (file) fclose(file);
    if (is_undivided) seen.own = resident;
    return seen;
}

/* The first thread of a process may end before the others: its status has no memory then, theirs has. */
static struct memory memory_of(const char *pid) {
    char path[600];
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    struct memory seen = read_status(path);
    if (seen.threads < 2 || seen.own > 0) return seen;
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && seen.own == 0 && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%s/task/%s/status", pid, entry->d_name);
        struct memory of_thread = read_status(path);
        if (of_thread.own > 0) seen = of_thread;
    }
    if (folder) closedir(folder);
    return seen;
}

/* What the process may have written of its mappings, where its status has only a sum, as gVisor has: the sum counts the
 * libraries of each process. */
static amount written_memory_of(const char *pid) {
    char path[300], line[256];
    amount total = 0, number;
    snprintf(path, sizeof path, "/proc/%s/smaps", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Dirty: %llu", &number) == 1 || sscanf(line, "Shared_Dirty: %llu", &number) == 1) total += number << 10;
    if (file) fclose(file);
    return total;
}

/* The same with pages that several processes share divided between them: those of forked workers are often the same.
 * This takes as long as the memory is large. */
static amount divided_memory_of(const char *pid) {
    char path[300], text[4096];
    struct memory undivided = memory_of(pid);
    amount total = undivided.page_tables + memory_files_of(pid, undivided.threads), number;
    snprintf(path, sizeof path, "/proc/%s/smaps_rollup", pid);
    if (!read_file(path, text, sizeof text) || !strstr(text, "Pss_Anon:"))
        return total + (is_undivided ? written_memory_of(pid) : undivided.own);
    static const char *const kinds[] = {"Pss_Anon:", "Pss_Shmem:", "SwapPss:"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *line = strstr(text, kinds[i]);
        if (line && sscanf(line + strlen(kinds[i]), "%llu", &number) == 1) total += number << 10;
    }
    return total;
}

/* Time that the process ran, and those of its children that it has waited for. The name in the file may contain any
 * character, so it is skipped up to the last parenthesis. */
static amount cpu_of(const char *pid) {
    char path[300], text[1024];
    amount user, system, child_user, child_system;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    char *rest = read_file(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    static const char format[] = ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu";
    if (!rest || sscanf(rest, format, &user, &system, &child_user, &child_system) != 4) return 0;
    return (user + system + child_user + child_system) * (1000000000ull / (amount)sysconf(_SC_CLK_TCK));
}

/* Adds the time that a task has run, and has waited for a processor, since it was last seen. 0: it is gone, or the
 * kernel does not measure this: then there is no such file, or it says that the task has never run. */
static int add_times(const char *path, int number) {
    char text[128];
    amount ran, wait;
    if (!read_file(path, text, sizeof text) || sscanf(text, "%llu %llu", &ran, &wait) != 2 || ran == 0) return 0;
    if (tasks[number % MAX_TASKS].number != number) memset(&tasks[number % MAX_TASKS], 0, sizeof tasks[0]);
    if (ran > tasks[number % MAX_TASKS].ran) seen_cpu += ran - tasks[number % MAX_TASKS].ran;
    if (wait > tasks[number % MAX_TASKS].wait) waited += wait - tasks[number % MAX_TASKS].wait;
    tasks[number % MAX_TASKS].number = number;
    tasks[number % MAX_TASKS].ran = ran;
    tasks[number % MAX_TASKS].wait = wait;
    return 1;
}

static void add_times_of(const char *pid) {
    char path[600];
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%s/task/%s/schedstat", pid, entry->d_name);
        add_times(path, atoi(entry->d_name));
    }
    if (folder) closedir(folder);
}

/* Bytes that a process, and those of its children that it has waited for, gave to write(2) and its like. */
static amount written_in(const char *account) {
    amount bytes = 0;
    const char *line = strstr(account, "wchar: ");
    if (line) sscanf(line, "wchar: %llu", &bytes);
    return bytes;
}

static amount written_by(const char *pid) {
    char path[300], text[512];
    snprintf(path, sizeof path, "/proc/%s/io", pid);
    return read_file(path, text, sizeof text) ? written_in(text) : 0;
}

/* Called in the process of a call, before it becomes the command. Only root may open this file of a process that has
 * ended, or that is not dumpable. So the process opens its own and sends it, and the spawner reads it at the end. */
void send_account(int socket) {
    int account = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (account >= 0) send_descriptors(socket, "", 1, &account, 1);
    if (account >= 0) close(account);
}

void keep_account(pid_t pid, int socket) {
    if (account_count < MAX_TASKS) accounts[account_count++] = (struct account){pid, socket};
    else close(socket);
}

/* Of a process that has ended and was not reaped yet. */
static amount written_in_account(pid_t pid) {
    char packet, text[512] = "";
    int account, index = 0;
    while (index < account_count && accounts[index].pid != pid) index++;
    if (index == account_count) return 0;
    if (receive_descriptors(accounts[index].socket, &packet, 1, &account, 1) == 1) {
        if (pread(account, text, sizeof text - 1, 0) < 0) text[0] = 0;
        close(account);
    }
    close(accounts[index].socket);
    accounts[index] = accounts[--account_count];
    return written_in(text);
}

uint64_t divided_memory(void) {
    amount total = shared_segments();
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && strcmp(entry->d_name, "1") != 0)
            total += divided_memory_of(entry->d_name);
    if (folder) closedir(folder);
    return total;
}

struct totals measure_living(void) {
    struct totals totals = {.memory = shared_segments()};
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *pid = entry->d_name;
        if (pid[0] < '1' || pid[0] > '9' || strcmp(pid, "1") == 0) continue;
        struct memory seen = memory_of(pid);
        amount memory = seen.own + seen.page_tables + memory_files_of(pid, seen.threads), written = written_by(pid);
        int number = atoi(pid);
        totals.processes += seen.threads;
        totals.memory += memory;
        totals.cpu_ns += cpu_of(pid);
        totals.written += written;
        add_times_of(pid);
        if (tasks[number % MAX_TASKS].number != number) continue;
        if (memory > tasks[number % MAX_TASKS].memory) tasks[number % MAX_TASKS].memory = memory;
        tasks[number % MAX_TASKS].written = written;
    }
    if (folder) closedir(folder);
    return totals;
}

/* Adds what a process has waited that has ended and was not reaped yet. A short call is never seen otherwise.
 * Returns what it wrote, and the highest memory that the watch saw of it while it ran. */
struct totals measure_ended(pid_t pid) {
    char path[64];
    struct totals totals = {.written = written_in_account(pid)};
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    is_unmeasured |= !add_times(path, (int)pid);
    if (tasks[(unsigned)pid % MAX_TASKS].number == (int)pid) {
        totals.memory = tasks[(unsigned)pid % MAX_TASKS].memory;
        if (tasks[(unsigned)pid % MAX_TASKS].written > totals.written) totals.written = tasks[(unsigned)pid % MAX_TASKS].written;
    }
    tasks[(unsigned)pid % MAX_TASKS].number = 0; /* the number may be given to another task */
    return totals;
}

/* Nanoseconds of all running that was seen since the last call of this function. */
uint64_t take_seen_cpu(void) {
    amount taken = seen_cpu;
    seen_cpu = 0;
    return taken;
}

/* Nanoseconds of all waiting that was seen since the last call of this function. */
uint64_t take_wait(void) {
    amount taken = waited;
    waited = 0;
    return is_unmeasured ? UNKNOWN_WAIT : taken;
}

/* The most memory of a process that was the content of files, as far as it was seen. */
uint64_t peak_mapped_files(void) { return mapped_files; }

/* Processes that the kernel's out-of-memory killer has killed on this machine. */
uint64_t out_of_memory_kills(void) {
    char line[128];
    amount kills = 0;
    FILE *file = fopen("/proc/vmstat", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "oom_kill %llu", &kills) == 1) break;
    if (file) fclose(file);
    return kills;
}

/* Whether the control group of this container reached its own memory limit: only then the kernel killed for it, and not
 * because the machine, or a group above, had no memory left. An engine shows its container that group alone. In version 1
 * also after a mere reclaim: the submission is blamed then. */
int group_reached_memory_limit(void) {
    static const struct { const char *path, *format; } counts[] = {
        {"/sys/fs/cgroup/memory.events", "oom %llu"},
        {"/sys/fs/cgroup/memory/memory.failcnt", "%llu"},
        {"/sys/fs/cgroup/memory/memory.memsw.failcnt", "%llu"}, /* of memory and swap together; Linux 6.18 does not count */
    };
    char line[128];
    amount count = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && count == 0; i++) {
        FILE *file = fopen(counts[i].path, "re");
        while (file && fgets(line, sizeof line, file))
            if (sscanf(line, counts[i].format, &count) == 1) break;
        if (file) fclose(file);
    }
    return count > 0;
}
