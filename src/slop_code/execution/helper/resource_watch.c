/* Resource watch: memory and processes of the subject's box, read from its own /proc, against the limits. It works
 * everywhere; control groups, with higher limits, work only where root makes them. */
#include "helper.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long long amount;

/* Memory files that a process holds open: what is written to them is in no process's memory map. */
static amount memory_files_of(const char *pid) {
    char path[600], target[64];
    amount total = 0;
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat information;
        snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target);
        if (length > 7 && strncmp(target, "/memfd:", 7) == 0 && stat(path, &information) == 0)
            total += (amount)information.st_blocks * 512;
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

/* Bytes that are the process's alone or shared memory; files that it maps are not its own. A thread counts as a
 * process, as it does for the kernel. */
static amount memory_of(const char *pid, amount *threads) {
    char path[300], line[256];
    amount total = 0, number;
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %llu", &number) == 1 || sscanf(line, "RssShmem: %llu", &number) == 1) total += number << 10;
        else if (sscanf(line, "Threads: %llu", &number) == 1) *threads += number;
    fclose(file);
    return total;
}

/* The limit that the box exceeds, if any. Process 1 is the spawner itself, and is not counted. */
enum reason exceeded_limit(amount max_memory, amount max_processes) {
    DIR *folder = opendir("/proc");
    amount memory = shared_segments(), processes = 0;
    if (!folder) return ENDED_ITSELF;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || strcmp(entry->d_name, "1") == 0) continue;
        memory += memory_of(entry->d_name, &processes) + memory_files_of(entry->d_name);
    }
    closedir(folder);
    if (processes > max_processes) return TOO_MANY_PROCESSES;
    return memory > max_memory ? TOO_MUCH_MEMORY : ENDED_ITSELF;
}
