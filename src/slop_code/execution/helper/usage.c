/* Usage: what the subject's box used since the judge's plugin asked last, and the limits that struck. The spawner keeps
 * it: the submission can neither trace it nor reach it, and a launcher may be killed at any time. */
#include "helper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#define MAX_FOLDERS 8

static struct totals reaped;         /* of processes that are gone, since the box was made */
static struct totals answered;       /* cpu_ns and written, at the last answer */
static uint64_t memory, processes;   /* the highest since the last answer */
static uint64_t memory_limit = UINT64_MAX;
static uint64_t memory_kills;        /* of the kernel, at the last answer */
/* Memory of the process that was reaped last, at its highest: with files that it maps, without, and as it was seen. */
static struct { uint64_t resident, peak, seen; } last;
static struct usage current;         /* of which only `struck` is used until the answer */
static uint64_t disk;                /* the highest since the last answer, of the fullest folder */
static char *folders[MAX_FOLDERS + 1];
/* What a folder holds: when the watch began, at the last look, and at its lowest since the last answer, or since the
 * folder was filled. */
static struct fill { uint64_t bytes, files; } at_start[MAX_FOLDERS], latest[MAX_FOLDERS], lowest[MAX_FOLDERS];

static uint64_t max(uint64_t one, uint64_t other) { return one > other ? one : other; }
static uint64_t min(uint64_t one, uint64_t other) { return one < other ? one : other; }

/* As waitpid(-1), and counts what the child used, with those of its children that it waited for. */
pid_t reap_child(int options, int *status) {
    siginfo_t information = {0};
    struct rusage used;
    if (waitid(P_ALL, 0, &information, WEXITED | WNOWAIT | options) != 0) return -1;
    pid_t pid = information.si_pid;
    if (pid == 0) return 0;
    struct totals ended = measure_ended(pid);
    last.seen = ended.memory;
    reaped.written += ended.written;
    if (wait4(pid, status, 0, &used) != pid) return -1;
    reaped.cpu_ns += (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u;
    reaped.cpu_ns += (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
    uint64_t files = peak_mapped_files();
    last.resident = (uint64_t)used.ru_maxrss << 10;
    last.peak = last.resident > files ? last.resident - files : 0;
    memory = max(memory, last.peak);
    return pid;
}

static struct totals measure(void) {
    struct totals living = measure_living();
    /* Pages that processes share count for each of them, so this may be too much. */
    if (living.memory > memory_limit) living.memory = divided_memory();
    memory = max(memory, living.memory);
    processes = max(processes, living.processes);
    return living;
}

/* The limit for which the box is to be ended, if any. */
enum limit exceeded_limit(uint64_t max_memory, uint64_t max_processes) {
    memory_limit = max_memory;
    struct totals living = measure();
    if (living.processes > max_processes) return PROCESS_LIMIT;
    return living.memory > max_memory ? MEMORY_LIMIT : NO_LIMIT;
}

/* A short call ends before it is ever measured. */
void count_calls(int running) { processes = max(processes, (uint64_t)running); }

/* Each limit once per call. */
void record_struck(enum limit limit, const char *call, size_t size) {
    uint64_t count = current.struck_count;
    for (uint64_t i = 0; i < count; i++)
        if (current.struck[i].limit == limit && current.struck[i].size == size && memcmp(current.struck[i].call, call, size) == 0) return;
    if (count == MAX_STRUCK) return;
    struct struck *next = &current.struck[current.struck_count++];
    *next = (struct struck){.limit = limit, .size = (uint32_t)size};
    memcpy(next->call, call, size);
}

/* Whether the kernel's out-of-memory killer ended a process that has this status. It is the only reason if neither the
 * submission nor the spawner sent the signal, which the spawner knows of itself alone: so this is a strong hint. */
int killed_for_memory(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && out_of_memory_kills() > memory_kills;
}

/* Whether the kernel killed the process that was reaped last for a limit of the box: the process had so much memory, or
 * the control group, which may be quicker than the watch, reached its own limit. */
int limit_killed(uint64_t max_memory) {
    return last.resident > max_memory || memory > max_memory || group_reached_memory_limit();
}

/* Whether the process that was reaped last had more memory than it may, if only for a moment between two looks of the
 * watch. Without this, the verdict on such a process would depend on the moment of the look. The kernel's peak also has
 * mapped files that the watch did not see, so it counts only if the watch saw much of the process's own memory: a call
 * that ended well must not become one that was killed. */
int peak_exceeded(uint64_t max_memory) { return last.peak > max_memory && last.seen > max_memory / 2; }

static struct fill fill_of(const struct statvfs *information) {
    return (struct fill){(uint64_t)(information->f_blocks - information->f_bfree) * information->f_frsize,
                         (uint64_t)(information->f_files - information->f_ffree)};
}

void watch_folders(char **paths) {
    struct statvfs information;
    for (int i = 0; paths[i] && i < MAX_FOLDERS; i++) {
        folders[i] = paths[i];
        if (statvfs(paths[i], &information) == 0) at_start[i] = latest[i] = lowest[i] = fill_of(&information);
    }
    memory_kills = out_of_memory_kills();
}

/* Whether a folder that the submission writes to was filled since this was last so, or since the last answer: a write
 * has failed then or the next one will. A folder that was full before and stays full says nothing about the calls that
 * run now. Every look also counts for the highest use: the file of a short call may be gone at the next one. */
int disk_was_filled(void) {
    struct statvfs information;
    int filled = 0;
    for (int i = 0; folders[i]; i++) {
        if (statvfs(folders[i], &information) != 0) continue;
        struct fill now = latest[i] = fill_of(&information);
        disk = max(disk, now.bytes > at_start[i].bytes ? now.bytes - at_start[i].bytes : 0);
        lowest[i] = (struct fill){min(lowest[i].bytes, now.bytes), min(lowest[i].files, now.files)};
        if (!(information.f_bavail == 0 && now.bytes > lowest[i].bytes)
            && !(information.f_files > 0 && information.f_ffree == 0 && now.files > lowest[i].files)) continue;
        lowest[i] = now;
        filled = 1;
    }
    return filled;
}

/* Answers, and begins anew. */
void answer_usage(int fd) {
    struct totals living = measure(), total = {.cpu_ns = reaped.cpu_ns + living.cpu_ns, .written = reaped.written + living.written};
    /* A child of a process that ignores SIGCHLD is in nobody's total once it is gone, but the watch has seen it run.
     * Its waiting was seen as well: without its running, a submission that starves itself would look starved by
     * others. */
    current.cpu_ns = max(total.cpu_ns > answered.cpu_ns ? total.cpu_ns - answered.cpu_ns : 0, take_seen_cpu());
    current.written = total.written > answered.written ? total.written - answered.written : 0;
    current.wait_ns = take_wait();
    disk_was_filled();
    current.memory = memory, current.processes = processes, current.disk = disk;
    size_t unused = (MAX_STRUCK - current.struck_count) * sizeof current.struck[0];
    send(fd, &current, sizeof current - unused, MSG_NOSIGNAL | MSG_DONTWAIT);
    answered.cpu_ns = max(total.cpu_ns, answered.cpu_ns), answered.written = max(total.written, answered.written);
    memory = processes = disk = current.struck_count = 0;
    memcpy(lowest, latest, sizeof lowest);
    memory_kills = out_of_memory_kills();
}
