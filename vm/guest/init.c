/* PID 1 of the guest. Starts nothing but sshd, the world's first process and the bulk server. */
#include "guest.h"

#define PORT_MS 3000

static struct {
    char token[HEX_LEN + 1], hostname[65], profile[16];
    long long time;
} session;

/* Reads the session's secrets; the links' token is nowhere else from here on. */
static void read_session(void) {
    char text[1024];
    errno = ENOENT;
    if (read_text("/session/config", text, sizeof text) < 1) fatal("session");
    errno = EINVAL;
    if (sscanf(text, "token=%32[0-9a-f] hostname=%64[a-z0-9-] time=%lld guest=%15[a-z]",
               session.token, session.hostname, &session.time, session.profile) != 4 ||
        strlen(session.token) != HEX_LEN)
        fatal("session");
    memset(text, 0, sizeof text);
    if (unlink("/session/config") || sethostname(session.hostname, strlen(session.hostname)))
        fatal("session");
}

/* The clock of the machine is believed unless it is behind the host's, or a minute ahead. */
static void set_clock(void) {
    struct timespec fresh = {.tv_sec = session.time}, t;
    clock_gettime(CLOCK_REALTIME, &t);
    bool right = session.time <= t.tv_sec && t.tv_sec < session.time + 60;
    if (!right && clock_settime(CLOCK_REALTIME, &fresh)) fatal("clock");
}

static void make_cgroups(void) {
    if (mkdir(CGROUP "agent", 0755)  /* the agent: what freeze freezes */
        || mkdir(CGROUP "keep", 0755) /* watchers of programs: outlive every link */
        || mkdir(CGROUP "link", 0755)) /* sshd and what it started: ends with its link */
        fatal("cgroup");
    /* a fork bomb must leave room for what watches it; a kernel without the controller cannot */
    if (write_text(CGROUP "cgroup.subtree_control", "+pids"))
        write_text(CGROUP "agent/pids.max", "8192");
    /* whatever the agent computes, a key that is typed has its turn at once */
    if (write_text(CGROUP "cgroup.subtree_control", "+cpu")) {
        write_text(CGROUP "link/cpu.weight", "10000");
        write_text(CGROUP "keep/cpu.weight", "10000");
        /* A line on a terminal wakes a worker of the kernel. At the usual 100 it takes the processor
         * from whoever prints, after each line, which costs an emulated one nine tenths of its time. */
        write_text(CGROUP "agent/cpu.weight", "300");
    }
}

static void raise_loopback(void) {
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r)) fatal("loopback");
    close(fd);
}

static void open_port(struct link *l, const char *name) {
    char path[320];
    int64_t end = now_ms() + PORT_MS;
    for (; !sys_find("/sys/class/virtio-ports", "name", name, path, sizeof path); nap_ms(2)) {
        errno = ENODEV;
        if (now_ms() > end) fatal(name);
    }
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) fatal(name);
    link_init(l, fd, session.token);
}

static _Noreturn void init(void) {
    static struct link control, bulk;
    static const struct rlimit files = {.rlim_cur = 4096, .rlim_max = 524288};
    umask(022);
    chmod("/", 0755); /* a tmpfs begins open to all, which sshd's strict modes refuse */
    mount_own();
    read_session();
    set_clock();
    if (setrlimit(RLIMIT_NOFILE, &files)) fatal("rlimit");
    make_cgroups();
    setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
    start_sshd(); /* takes a while, so it begins before all else */
    harden(session.profile);
    raise_loopback();
    load_modules();
    seal_modules();
    raise_network();
    mount_disks();
    pid_t holder = start_world();
    open_port(&control, "cloche.control");
    open_port(&bulk, "cloche.bulk");
    terminal_listen(TERMINAL_SOCKET);
    relay_run(&control, &bulk, holder);
}

int main(int argc, char **argv) {
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc ? argv[0] : "";
    if (!strcmp(name, "enter")) return enter_main(argv);
    if (!strcmp(name, "hold")) return hold_main(argc, argv);
    if (getpid() != 1) return 64;
    init();
}
