/* The system-call filter of every box, made from a table.
 *
 * Namespaces, capabilities and mounts isolate a box. The table has the system calls that none of them restricts; all
 * others are allowed, as a submission may be any program. */
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no filter for this processor"
#endif

#define OTHER_NUMBERING 0x40000000 /* x86_64 takes the same calls by other numbers from here on (x32) */
#define FIRST_PROCESS 1
#define MAX_INSTRUCTIONS 256

#define MAX_CONDITIONS 2
#define OLD_SETOPTIONS 21 /* x86_64 takes PTRACE_SETOPTIONS by this number, too */

enum test { NONE, EQUALS, HAS_FLAG };

struct condition {
    enum test test;
    unsigned argument; /* index; its lower 32 bits are tested: the kernel reads these arguments as an int or flags */
    uint32_t value;
};

#define ALWAYS {{NONE, 0, 0}}

struct rule {
    uint32_t call;
    uint32_t error; /* errno with which the call fails, if it fulfils all conditions */
    struct condition conditions[MAX_CONDITIONS];
};

static const struct rule rules[] = {
    /* The kernel itself carries out what is put into a ring, and no filter sees it. */
    {SYS_io_uring_setup, ENOSYS, ALWAYS},
    {SYS_io_uring_enter, ENOSYS, ALWAYS},
    {SYS_io_uring_register, ENOSYS, ALWAYS},
    /* Keyrings are in no namespace: boxes could leave each other messages there, or read the host's keys. */
    {SYS_keyctl, ENOSYS, ALWAYS},
    {SYS_add_key, ENOSYS, ALWAYS},
    {SYS_request_key, ENOSYS, ALWAYS},
    /* Whoever opens a file with a lease waits for its holder: other boxes share files of the host, such as Python's. */
    {SYS_fcntl, EINVAL, {{EQUALS, 1, F_SETLEASE}}},
    /* Sockets to the host of a virtual machine go around the network namespace. */
    {SYS_socket, EAFNOSUPPORT, {{EQUALS, 0, AF_VSOCK}}},
    /* In a user namespace of its own a process would have every capability again. A filter cannot look at the flags
     * of clone3, which are behind a pointer. When clone3 fails with ENOSYS, libraries use clone. */
    {SYS_clone3, ENOSYS, ALWAYS},
    {SYS_clone, EPERM, {{HAS_FLAG, 0, CLONE_NEWUSER}}},
    {SYS_unshare, EPERM, {{HAS_FLAG, 0, CLONE_NEWUSER}}},
    /* Linux refuses a new mount namespace without a capability, gVisor does not. */
    {SYS_clone, EPERM, {{HAS_FLAG, 0, CLONE_NEWNS}}},
    {SYS_unshare, EPERM, {{HAS_FLAG, 0, CLONE_NEWNS}}},
    /* The first process of a box, which starts and counts the submission's processes, runs as the same user. The
     * submission must not slow it down, starve it or lower its limits. */
    {SYS_prlimit64, EPERM, {{EQUALS, 0, FIRST_PROCESS}}},
    {SYS_sched_setaffinity, EPERM, {{EQUALS, 0, FIRST_PROCESS}}},
    {SYS_sched_setscheduler, EPERM, {{EQUALS, 0, FIRST_PROCESS}}},
    {SYS_sched_setparam, EPERM, {{EQUALS, 0, FIRST_PROCESS}}},
    {SYS_sched_setattr, EPERM, {{EQUALS, 0, FIRST_PROCESS}}},
    {SYS_setpriority, EPERM, {{EQUALS, 0, PRIO_USER}}}, /* all processes of the user, the first process included */
    {SYS_setpriority, EPERM, {{EQUALS, 1, FIRST_PROCESS}}},
    /* A process that is traced with this option stops at its end, also when it is killed, until its tracer ends. Two
     * that trace each other so would never end, and their box would keep its memory until the machine is started
     * anew. */
    {SYS_ptrace, EPERM, {{EQUALS, 0, PTRACE_SEIZE}, {HAS_FLAG, 3, PTRACE_O_TRACEEXIT}}},
    {SYS_ptrace, EPERM, {{EQUALS, 0, PTRACE_SETOPTIONS}, {HAS_FLAG, 3, PTRACE_O_TRACEEXIT}}},
    {SYS_ptrace, EPERM, {{EQUALS, 0, OLD_SETOPTIONS}, {HAS_FLAG, 3, PTRACE_O_TRACEEXIT}}},
};

struct program {
    unsigned short length;
    struct sock_filter code[MAX_INSTRUCTIONS];
};

/* Returns the index of the new instruction. */
static unsigned short emit(struct program *program, unsigned code, uint32_t value) {
    errno = 0;
    if (program->length == MAX_INSTRUCTIONS) die("the filter of system calls is too long");
    program->code[program->length] = (struct sock_filter)BPF_STMT((unsigned short)code, value);
    return program->length++;
}

static void emit_load(struct program *program, size_t offset) { emit(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset); }

static void emit_refusal(struct program *program, uint32_t error) { emit(program, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error); }

/* The distance of a jump at `from` to the next instruction that is emitted. */
static unsigned char distance(const struct program *program, unsigned short from) { return (unsigned char)(program->length - from - 1); }

static void emit_rule(struct program *program, const struct rule *rule) {
    unsigned short jumps[1 + MAX_CONDITIONS], count = 0;
    emit_load(program, offsetof(struct seccomp_data, nr));
    jumps[count++] = emit(program, BPF_JMP | BPF_JEQ | BPF_K, rule->call);
    for (const struct condition *each = rule->conditions; each < rule->conditions + MAX_CONDITIONS && each->test != NONE; each++) {
        emit_load(program, offsetof(struct seccomp_data, args) + each->argument * sizeof(uint64_t));
        jumps[count++] = emit(program, BPF_JMP | (each->test == EQUALS ? BPF_JEQ : BPF_JSET) | BPF_K, each->value);
    }
    emit_refusal(program, rule->error);
    for (unsigned i = 0; i < count; i++) program->code[jumps[i]].jf = distance(program, jumps[i]);
}

static void build_filter(struct program *program) {
    program->length = 0;
    /* A 32-bit program on the same kernel has another architecture, in which the same numbers are other calls. */
    emit_load(program, offsetof(struct seccomp_data, arch));
    unsigned short native = emit(program, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH);
    emit_refusal(program, ENOSYS);
    program->code[native].jt = distance(program, native);
    emit_load(program, offsetof(struct seccomp_data, nr));
    unsigned short other = emit(program, BPF_JMP | BPF_JGE | BPF_K, OTHER_NUMBERING);
    emit_refusal(program, ENOSYS);
    program->code[other].jf = distance(program, other);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) emit_rule(program, &rules[i]);
    emit(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

/* show-filter: prints the filter as the kernel gets it, in hexadecimal digits. A forked judge sets it for itself. A
 * test runs it, instruction by instruction. */
int show_filter_main(int argc, char **argv) {
    static struct program program;
    (void)argc, (void)argv;
    build_filter(&program);
    for (size_t i = 0; i < program.length * sizeof *program.code; i++) printf("%02x", ((unsigned char *)program.code)[i]);
    return 0;
}

void restrict_calls(void) {
    static struct program program;
    build_filter(&program);
    struct sock_fprog filter = {program.length, program.code};
    /* Without it only root may set a filter: a program that gains privileges must not run under somebody else's. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("cannot set no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) die("cannot restrict system calls");
}
