/* The control port: each connection of the host gets a fresh sshd over a socketpair.
 *
 * sshd is started before anybody asks for it, for its start takes longer than a handshake. It and
 * all that it starts live in one cgroup, which is killed when the link ends; the agent and its
 * watcher have left it by then. */
#include "guest.h"

#define IN_MAX (256 * 1024)
#define STUCK_MS 5000   /* an sshd that takes nothing for so long is hung; the host retries */
#define EARLY_DEATHS 20 /* in a row, before any connection: then something is really wrong */

static struct {
    int fd; /* our end of the socketpair */
    pid_t pid;
    unsigned born, early_deaths; /* sshds so far (descriptors repeat); those that served nobody */
    uint8_t in[IN_MAX];          /* from the host, not yet taken by sshd */
    size_t in_at, in_end;
    int64_t taken_at; /* when sshd last took something, or had nothing to take */
} ssh;
static pid_t bulk_pid;

static void child_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    write_text("/proc/self/oom_score_adj", "-1000");
}

void start_sshd(void) {
    int pair[2], room = 1 << 20;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) || (ssh.pid = fork()) < 0)
        fatal("sshd");
    if (!ssh.pid) {
        child_signals();
        join_cgroup("link");
        setsid();
        dup2(pair[1], 0);
        dup2(pair[1], 1);
        execl(SSHD, SSHD, "-i", "-e", (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    ssh.fd = pair[0];
    ssh.born++;
    ssh.in_at = ssh.in_end = 0;
}

static void end_link(struct link *l) {
    l->live = false;
    close(ssh.fd);
    if (!write_text(CGROUP "link/cgroup.kill", "1")) kill(ssh.pid, SIGKILL);
    start_sshd();
}

/* Ends a link whose host does not know yet that it has come to its end. */
static void break_off(struct link *l) {
    end_link(l);
    link_ended(l);
}

static void died_unused(struct link *l) {
    if (++ssh.early_deaths > EARLY_DEATHS) fatal("sshd");
    nap_ms(50);
    end_link(l);
}

static void from_host(struct link *l) {
    static uint8_t raw[IN_MAX];
    memmove(ssh.in, ssh.in + ssh.in_at, ssh.in_end -= ssh.in_at);
    ssh.in_at = 0;
    ssize_t n = link_read(l, raw, IN_MAX - ssh.in_end);
    if (n < 0 && l->live) end_link(l);
    for (size_t at = 0, used; n > 0 && at < (size_t)n; at += used) {
        enum link_event event;
        bool was_live = l->live;
        used = link_scan(l, raw + at, (size_t)n - at, &event);
        if (was_live && event == LINK_HELLO) end_link(l);
        else if (was_live) {
            memcpy(ssh.in + ssh.in_end, raw + at, used);
            ssh.in_end += used;
        }
        if (event == LINK_BEGIN) ssh.early_deaths = 0;
    }
}

static void to_sshd(void) {
    while (ssh.in_at < ssh.in_end) {
        ssize_t n = send(ssh.fd, ssh.in + ssh.in_at, ssh.in_end - ssh.in_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return;
        /* gone: what it will never read is dropped, and its socket tells the rest */
        ssh.in_at = n < 0 ? ssh.in_end : ssh.in_at + (size_t)n;
        ssh.taken_at = now_ms();
    }
}

static void from_sshd(struct link *l) {
    ssize_t n = recv(ssh.fd, l->out, 64 * 1024, MSG_DONTWAIT);
    if (n > 0) l->out_end = (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) break_off(l);
}

static void start_bulk(struct link *l) {
    if ((bulk_pid = fork()) < 0) fatal("bulk");
    if (bulk_pid) return;
    close(ssh.fd);
    terminal_forget();
    child_signals();
    bulk_run(l);
}

/* A stop that was asked for: everything ends, the disk is in order, then the machine goes. */
static _Noreturn void shut_down(void) {
    write_text(CGROUP "agent/cgroup.kill", "1");
    write_text(CGROUP "keep/cgroup.kill", "1");
    write_text(CGROUP "link/cgroup.kill", "1");
    sync();
    mount(NULL, "/scratch", NULL, MS_REMOUNT | MS_RDONLY, NULL);
    dprintf(2, "CLOCHE down\n");
    machine_off();
}

static void take_signals(int fd, struct link *bulk, pid_t holder) {
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGTERM) shut_down();
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == holder) fatal("world ended");
        terminal_reaped(pid, status);
        if (pid == bulk_pid) start_bulk(bulk);
    }
}

static int open_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Waits for something to do at p: the port, sshd, signals, the agent's terminal; then moves the
 * host's bytes. */
static void one_turn(struct link *l, struct pollfd *p) {
    bool full = ssh.in_end - ssh.in_at == IN_MAX, pending = ssh.in_at < ssh.in_end;
    bool quiet = l->out_at == l->out_end;
    if (!pending) ssh.taken_at = now_ms();
    p[0].fd = l->away ? -1 : l->port;
    p[0].events = (short)((full ? 0 : POLLIN) | (quiet ? 0 : POLLOUT));
    p[1].fd = l->live && !quiet && !pending ? -1 : ssh.fd;
    p[1].events = (short)((pending ? POLLOUT : 0) | (l->live && quiet ? POLLIN : 0));
    p[0].revents = p[1].revents = 0;
    int wait = l->away ? AWAY_MS : full ? 1000 : -1, rest = terminal_wishes(p + 3);
    poll(p, 3 + TERMINAL_FDS, rest < 0 || (wait >= 0 && wait < rest) ? wait : rest);
    if (l->away || (!full && p[0].revents & ~POLLOUT)) from_host(l);
    to_sshd();
    if (full && (now_ms() - ssh.taken_at > STUCK_MS || p[0].revents & POLLHUP)) break_off(l);
}

_Noreturn void relay_run(struct link *l, struct link *bulk, pid_t holder) {
    struct pollfd p[3 + TERMINAL_FDS] = {[2] = {.fd = open_signals(), .events = POLLIN}};
    start_bulk(bulk);
    dprintf(2, "CLOCHE ready\n");
    for (;;) {
        unsigned born = ssh.born;
        one_turn(l, p);
        bool stirs = ssh.born == born && p[1].revents;
        if (stirs && l->live && l->out_at == l->out_end) from_sshd(l);
        else if (stirs && !l->live && p[1].revents & POLLHUP) died_unused(l);
        link_flush(l);
        terminal_turn(p + 3);
        if (p[2].revents) take_signals(p[2].fd, bulk, holder);
    }
}
