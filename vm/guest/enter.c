/* `/bin/enter`: runs a program in the agent's world.
 *
 * The watcher stays outside as the program's parent and tells its status; the program itself gets
 * the world's namespaces, its cgroup and nothing of root. */
#include "guest.h"

#define ENV_MAX 256
#define TROUBLE 125 /* enter's own failure, as `env` and `timeout` say it */
/* chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service sys_chroot
 * audit_write setfcap: what package managers need, and nothing that reaches the kernel */
#define ROOT_CAPS 0xa00405fbULL
#define CAPABILITIES_V3 0x20080522 /* from linux/capability.h, which musl's headers do not carry */

struct plan {
    bool root, in_agent;
    const char *cwd;
    size_t env_n;
    char *env[ENV_MAX], **argv;
};

static _Noreturn void trouble(const char *what) {
    fprintf(stderr, "enter: %s: %s\n", what, strerror(errno));
    _exit(TROUBLE);
}

static _Noreturn void usage(void) {
    errno = EINVAL;
    trouble("[--root] [--cgroup agent|none] [--cwd DIR] [-e K=V] -- ARGV");
}

/* Adds a variable; the first of a name wins, so what was asked for comes before the usual ones. */
static void plan_env(struct plan *p, char *pair) {
    size_t name = strcspn(pair, "=") + 1;
    if (!strchr(pair, '=') || p->env_n == ENV_MAX) usage();
    for (size_t i = 0; i < p->env_n; i++)
        if (!strncmp(p->env[i], pair, name)) return;
    p->env[p->env_n++] = pair;
}

static void usual_env(struct plan *p) {
    static char term[128];
    char *both[] = {term, "LANG=C.UTF-8", "SHELL=/bin/bash",
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
    char *agent[] = {"HOME=/home/agent", "USER=agent", "LOGNAME=agent",
                     "XDG_RUNTIME_DIR=/run/user/1000"};
    char *root[] = {"HOME=/root", "USER=root", "LOGNAME=root", "XDG_RUNTIME_DIR=/run"};
    snprintf(term, sizeof term, "TERM=%s", getenv("TERM") ? getenv("TERM") : "dumb");
    for (size_t i = 0; i < LENGTH(both); i++) plan_env(p, both[i]);
    for (size_t i = 0; i < LENGTH(root); i++) plan_env(p, p->root ? root[i] : agent[i]);
}

static void parse(struct plan *p, char **a) {
    for (; *a && strcmp(*a, "--"); a++) {
        if (!strcmp(*a, "--root")) {
            p->root = true;
            continue;
        }
        const char *option = *a++;
        if (!*a) usage();
        if (!strcmp(option, "--cgroup") && !strcmp(*a, "agent")) p->in_agent = true;
        else if (!strcmp(option, "--cgroup") && !strcmp(*a, "none")) p->in_agent = false;
        else if (!strcmp(option, "--cwd")) p->cwd = *a;
        else if (!strcmp(option, "-e")) plan_env(p, *a);
        else usage();
    }
    if (!*a || !a[1]) usage();
    p->argv = a + 1;
    usual_env(p);
}

/* The first process of the world, as a descriptor that names all its namespaces. */
static int open_holder(void) {
    char text[32];
    if (read_text(HOLDER_FILE, text, sizeof text) < 1) return -1;
    return (int)syscall(SYS_pidfd_open, atoi(text), 0);
}

/* Gives up everything of root's but what the world's own root has; as the agent, that too. */
void become(bool root) {
    uint64_t kept = root ? ROOT_CAPS : 0;
    struct { uint32_t version; int pid; } head = {CAPABILITIES_V3, 0};
    struct { uint32_t effective, permitted, inheritable; } sets[2] = {0};
    for (size_t i = 0; i < LENGTH(sets); i++)
        sets[i].effective = sets[i].permitted = (uint32_t)(kept >> 32 * i);
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)) trouble("capabilities");
    if (setgroups(0, NULL)) trouble("groups");
    if (!root && (setresgid(AGENT_UID, AGENT_UID, AGENT_UID) ||
                  setresuid(AGENT_UID, AGENT_UID, AGENT_UID) ||
                  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
        trouble("user");
    if (syscall(SYS_capset, &head, sets)) trouble("capabilities");
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
}

/* The first program of that name in PATH, or the name itself, for execvp to say what is wrong with
 * it. To try execve on each folder instead costs milliseconds a folder under emulation. */
static const char *find_program(const char *name) {
    static char path[4096];
    struct stat st;
    const char *rest = strchr(name, '/') ? NULL : getenv("PATH");
    for (size_t n; rest; rest = rest[n] ? rest + n + 1 : NULL) {
        n = strcspn(rest, ":");
        int whole = snprintf(path, sizeof path, "%.*s/%s", (int)n, rest, name);
        if (!n || whole >= (int)sizeof path || stat(path, &st) || !S_ISREG(st.st_mode)) continue;
        if (!access(path, X_OK)) return path;
    }
    return name;
}

static _Noreturn void run(struct plan *p, int holder) {
    if (p->in_agent && !join_cgroup("agent")) trouble("cgroup");
    write_text("/proc/self/oom_score_adj", p->root ? "0" : "500");
    if (isatty(0) && !p->root && (fchown(0, AGENT_UID, TTY_GID) || fchmod(0, 0620)))
        trouble("terminal");
    bool refuse = !p->root && is_strict();
    if (setns(holder, CLONE_NEWNS)) trouble("world");
    become(p->root);
    umask(022);
    if (chdir(p->cwd)) trouble(p->cwd);
    syscall(SYS_close_range, 3, ~0u, 0);
    for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
    if (refuse && !refuse_calls()) trouble("profile");
    clearenv(); /* execvp looks in PATH, and the toolkit's means nothing here */
    for (size_t i = 0; i < p->env_n; i++) putenv(p->env[i]);
    execvp(find_program(p->argv[0]), p->argv);
    int code = errno == ENOENT || errno == ENOTDIR ? 127 : 126;
    fprintf(stderr, "%s: %s\n", p->argv[0], strerror(errno));
    _exit(code);
}

int enter_main(char **argv) {
    static struct plan plan = {.cwd = "/workspace", .in_agent = true};
    int status, holder;
    parse(&plan, argv + 1);
    if (plan.in_agent && !join_cgroup("keep")) trouble("cgroup");
    if ((holder = open_holder()) < 0 || setns(holder, CLONE_NEWPID)) trouble("world");
    pid_t child = fork();
    if (child < 0) trouble("fork");
    if (!child) run(&plan, holder);
    for (int s = 1; s < NSIG; s++)
        if (s != SIGCHLD) signal(s, SIG_IGN); /* they are the program's; we only wait */
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) trouble("wait");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
