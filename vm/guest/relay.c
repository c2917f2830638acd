/* The control port: each connection of the host gets a fresh sshd over a socketpair.
 *
 * sshd is started before anybody asks for it, for its start takes longer than a handshake. It and
 * all that it starts live in one cgroup, which is killed when the link ends; dtach and the agent
 * have left it by then. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN_MAX (256 * 1024)
#define STUCK_MS 5000   /* an sshd that takes nothing for so long is hung; the host retries */
#define EARLY_DEATHS 20 /* in a row, before any connection: then something is really wrong */

static struct {
	int fd; /* our end of the socketpair */
	pid_t pid;
	unsigned early_deaths;
	uint8_t in[IN_MAX]; /* from the host, not yet taken by sshd */
	size_t in_at, in_end;
	int64_t taken_at; /* when sshd last took something, or had nothing to take */
} ssh;

static pid_t bulk_pid;

static void child_signals(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
}

void relay_start_sshd(void)
{
	int pair[2], room = 1 << 20;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		fatal("socketpair");
	ssh.pid = fork();
	if (ssh.pid < 0)
		fatal("fork sshd");
	if (!ssh.pid) {
		child_signals();
		move_to_cgroup(CGROUP_LINK);
		write_text("/proc/self/oom_score_adj", "-1000");
		setsid();
		dup2(pair[1], 0);
		dup2(pair[1], 1);
		execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-i", "-e", (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	ssh.fd = pair[0];
	setsockopt(ssh.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	ssh.in_at = ssh.in_end = 0;
}

static void end_link(struct link *l)
{
	l->live = false;
	close(ssh.fd);
	if (!write_text(CGROUP_LINK "/cgroup.kill", "1"))
		kill(ssh.pid, SIGKILL);
	relay_start_sshd();
}

static void died_unused(struct link *l)
{
	if (++ssh.early_deaths > EARLY_DEATHS)
		fatal("sshd");
	nap_ms(50);
	end_link(l);
}

static void from_host(struct link *l)
{
	if (ssh.in_at == ssh.in_end)
		ssh.in_at = ssh.in_end = 0;
	if (ssh.in_at) {
		memmove(ssh.in, ssh.in + ssh.in_at, ssh.in_end - ssh.in_at);
		ssh.in_end -= ssh.in_at;
		ssh.in_at = 0;
	}
	static uint8_t raw[IN_MAX];
	ssize_t n = link_read(l, raw, IN_MAX - ssh.in_end);
	if (n < 0 && l->live)
		end_link(l);
	for (size_t at = 0; n > 0 && at < (size_t)n;) {
		enum link_event event;
		bool was_live = l->live;
		size_t used = link_scan(l, raw + at, (size_t)n - at, &event);
		if (was_live) {
			memcpy(ssh.in + ssh.in_end, raw + at, used);
			ssh.in_end += used;
		}
		at += used;
		if (event == LINK_HELLO && was_live)
			end_link(l);
		if (event == LINK_BEGIN)
			ssh.early_deaths = 0;
	}
}

static void to_sshd(void)
{
	while (ssh.in_at < ssh.in_end) {
		ssize_t n = send(ssh.fd, ssh.in + ssh.in_at, ssh.in_end - ssh.in_at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		/* gone: what it will never read is dropped, and its socket tells the rest */
		ssh.in_at = n < 0 ? ssh.in_end : ssh.in_at + (size_t)n;
		ssh.taken_at = now_ms();
	}
}

static void from_sshd(struct link *l)
{
	ssize_t n = recv(ssh.fd, l->out, 64 * 1024, MSG_DONTWAIT);
	if (n > 0)
		l->out_end = (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		end_link(l);
}

static void start_bulk(struct link *l)
{
	bulk_pid = fork();
	if (bulk_pid < 0)
		fatal("fork bulk");
	if (bulk_pid)
		return;
	close(ssh.fd);
	child_signals();
	signal(SIGPIPE, SIG_IGN);
	write_text("/proc/self/oom_score_adj", "-1000");
	bulk_run(l);
}

/* A stop that was asked for: everything ends, the disk is in order, then the machine goes. */
static _Noreturn void shut_down(void)
{
	write_text(CGROUP_AGENT "/cgroup.kill", "1");
	write_text(CGROUP_KEEP "/cgroup.kill", "1");
	write_text(CGROUP_LINK "/cgroup.kill", "1");
	sync();
	mount(NULL, "/scratch", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	dprintf(2, "CLOCHE down\n");
	machine_off();
}

static void take_signals(int fd, struct link *bulk, pid_t holder)
{
	struct signalfd_siginfo info;
	while (read(fd, &info, sizeof info) == sizeof info)
		if (info.ssi_signo == SIGTERM)
			shut_down();
	for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
		if (pid == holder)
			fatal("world ended");
		if (pid == bulk_pid)
			start_bulk(bulk);
	}
}

static int open_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void one_turn(struct link *l, struct pollfd *p)
{
	bool room = ssh.in_end - ssh.in_at < IN_MAX;
	bool pending = ssh.in_at < ssh.in_end, quiet = l->out_at == l->out_end;
	if (!pending)
		ssh.taken_at = now_ms();
	p[0].fd = l->away ? -1 : l->port;
	p[0].events = (short)(link_wants(l) & (room ? ~0 : ~POLLIN));
	p[1].fd = l->live && !quiet && !pending ? -1 : ssh.fd;
	p[1].events = (short)((pending ? POLLOUT : 0) | (l->live && quiet ? POLLIN : 0));
	poll(p, 3, l->away ? AWAY_MS : room ? -1 : 1000);
	if (l->away || (room && p[0].revents & (POLLIN | POLLHUP | POLLERR)))
		from_host(l);
	to_sshd();
	if (!room && (now_ms() - ssh.taken_at > STUCK_MS || p[0].revents & POLLHUP))
		end_link(l);
	link_flush(l);
}

_Noreturn void relay_run(struct link *l, struct link *bulk, pid_t holder)
{
	struct pollfd p[3] = {{.fd = -1}, {.fd = -1}, {.events = POLLIN}};
	p[2].fd = open_signals();
	start_bulk(bulk);
	dprintf(2, "CLOCHE ready\n");
	for (;;) {
		int fd = ssh.fd;
		one_turn(l, p);
		if (p[1].fd == fd && ssh.fd == fd && p[1].revents) {
			if (l->live && l->out_at == l->out_end)
				from_sshd(l);
			else if (!l->live && p[1].revents & POLLHUP)
				died_unused(l);
			link_flush(l);
		}
		if (p[2].revents)
			take_signals(p[2].fd, bulk, holder);
	}
}
