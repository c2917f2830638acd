/* What the guest's kernel refuses to the agent's world, by profile; see docs/guide/security.md.
 *
 * `standard` is for every session; `debug` lets a program trace its children; `strict` leaves out
 * what an agent rarely needs and what faults of kernels are mostly reached by. */
#include "guest.h"

#define STRICT_FILE "/run/strict" /* in the toolkit root; tells /bin/enter */
#define X86_64 0xC000003Eu       /* AUDIT_ARCH_X86_64 */
#define X32 0x40000000u
#define NEW_SPACES 0x7E020000u   /* CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET */

bool strict;

static bool set(const char *name, const char *value) {
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    return write_text(path, value);
}

/* A setting that this kernel does not know has nothing to forbid in it. */
static void must(const char *name, const char *value) {
    if (!set(name, value) && errno != ENOENT) fatal(name);
}

void harden(const char *profile) {
    static const char *const always[][2] = {
        {"kernel/dmesg_restrict", "1"},    {"kernel/kptr_restrict", "2"},
        {"kernel/perf_event_paranoid", "3"}, {"kernel/sysrq", "0"},
        {"kernel/unprivileged_bpf_disabled", "1"}, {"net/core/bpf_jit_harden", "2"},
        {"kernel/kexec_load_disabled", "1"}, {"fs/suid_dumpable", "0"},
        {"fs/protected_symlinks", "1"},    {"fs/protected_hardlinks", "1"},
        {"fs/protected_fifos", "2"},       {"fs/protected_regular", "2"},
        {"dev/tty/ldisc_autoload", "0"},   {"dev/tty/legacy_tiocsti", "0"},
    };
    static const char *const more[][2] = {
        {"user/max_user_namespaces", "0"}, {"kernel/io_uring_disabled", "2"},
        {"vm/unprivileged_userfaultfd", "0"},
    };
    strict = !strcmp(profile, "strict");
    errno = EINVAL;
    if (!strict && strcmp(profile, "standard") && strcmp(profile, "debug")) fatal("profile");
    for (size_t i = 0; i < LENGTH(always); i++) must(always[i][0], always[i][1]);
    for (size_t i = 0; strict && i < LENGTH(more); i++) must(more[i][0], more[i][1]);
    must("kernel/yama/ptrace_scope", strict ? "3" : *profile == 'd' ? "1" : "2");
    int fd = strict ? open(STRICT_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (strict && fd < 0) fatal(STRICT_FILE);
    if (fd >= 0) close(fd);
}

/* No module is loaded from here on, whoever asks for one. */
void seal_modules(void) { must("kernel/modules_disabled", "1"); }

/* -- the strict profile's system calls ---------------------------------------------------- */

/* from linux/filter.h, bpf_common.h and seccomp.h, which musl's headers do not carry */
struct filter { uint16_t code; uint8_t yes, no; uint32_t k; };
struct program { unsigned short n; struct filter *first; };
enum { LOAD = 0x20, EQUAL = 0x15, AT_LEAST = 0x35, HAS_BIT = 0x45, RETURN = 0x06 };
enum { NUMBER = 0, ARCH = 4, FIRST_ARGUMENT = 16 }; /* in struct seccomp_data */
#define ALLOW 0x7fff0000u
#define REFUSE(code) (0x00050000u | (code))
#define FILTER 2

static const unsigned short refused[] = {
    /* other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, 438 /* pidfd_getfd */,
    440 /* process_madvise */,
    /* file systems and name spaces */
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, 428 /* open_tree */,
    429 /* move_mount */, 430 /* fsopen */, 431 /* fsconfig */, 432 /* fsmount */, 433 /* fspick */,
    442 /* mount_setattr */, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_quotactl,
    443 /* quotactl_fd */, SYS_fanotify_init, SYS_swapon, SYS_swapoff, SYS_acct,
    /* the kernel itself */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_syslog, SYS_iopl,
    SYS_ioperm, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_personality, SYS_lookup_dcookie,
    SYS_nfsservctl, SYS_uselib, SYS_vhangup, SYS_sethostname, SYS_setdomainname,
    /* the clock */
    SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
};
static const unsigned short missing[] = {435 /* clone3: libc then takes clone */,
                                         425 /* io_uring_setup */, 426, 427};
static const unsigned short families[] = {15 /* KEY */, 16 /* NETLINK */, 17 /* PACKET */,
                                          38 /* ALG */, 40 /* VSOCK */};

/* Refuses for the rest of this process's life, and that of all that it starts. */
bool refuse_calls(void) {
    static struct filter f[256];
    size_t n = 0;
#define SAY(...) (f[n++] = (struct filter){__VA_ARGS__})
#define WHEN(test, value, result) (SAY(test, 0, 1, value), SAY(RETURN, 0, 0, result))
    SAY(LOAD, 0, 0, ARCH);
    SAY(EQUAL, 1, 0, X86_64);
    SAY(RETURN, 0, 0, REFUSE(ENOSYS)); /* 32 bit programs have other numbers */
    SAY(LOAD, 0, 0, NUMBER);
    WHEN(AT_LEAST, X32, REFUSE(ENOSYS));
    for (size_t i = 0; i < LENGTH(missing); i++) WHEN(EQUAL, missing[i], REFUSE(ENOSYS));
    for (size_t i = 0; i < LENGTH(refused); i++) WHEN(EQUAL, refused[i], REFUSE(EPERM));
    SAY(EQUAL, 0, 4, SYS_clone);
    SAY(LOAD, 0, 0, FIRST_ARGUMENT);
    WHEN(HAS_BIT, NEW_SPACES, REFUSE(EPERM));
    SAY(RETURN, 0, 0, ALLOW);
    SAY(EQUAL, 1, 0, SYS_socket);
    SAY(RETURN, 0, 0, ALLOW);
    SAY(LOAD, 0, 0, FIRST_ARGUMENT);
    for (size_t i = 0; i < LENGTH(families); i++) WHEN(EQUAL, families[i], REFUSE(EPERM));
    SAY(RETURN, 0, 0, ALLOW);
    struct program all = {(unsigned short)n, f};
    return !prctl(PR_SET_SECCOMP, FILTER, &all);
}

/* Asked before a program leaves the toolkit root. */
bool is_strict(void) { return !access(STRICT_FILE, F_OK); }
