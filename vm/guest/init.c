/* PID 1 of the guest. Starts nothing but sshd, the world's first process and the bulk server. */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PORT_MS 10000

static struct {
	char token[HEX_LEN + 1];
	char hostname[65];
	int64_t time;
} session;

static void session_line(const char *key, const char *value)
{
	if (!strcmp(key, "token") && strlen(value) == HEX_LEN)
		memcpy(session.token, value, HEX_LEN);
	if (!strcmp(key, "hostname"))
		snprintf(session.hostname, sizeof session.hostname, "%s", value);
	if (!strcmp(key, "time"))
		session.time = strtoll(value, NULL, 10);
}

/* Reads the session's secrets; the links' token is nowhere else from here on. */
static void read_session(void)
{
	char text[1024], *rest;
	errno = ENOENT;
	if (read_text("/session/config", text, sizeof text) < 1)
		fatal("session");
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *value = strchr(line, '=');
		if (value)
			*value = 0;
		if (value)
			session_line(line, value + 1);
	}
	memset(text, 0, sizeof text);
	errno = EINVAL;
	if (unlink("/session/config") || !session.token[0])
		fatal("session");
	if (!session.hostname[0])
		strcpy(session.hostname, "cloche");
}

/* The clock of the machine is believed unless it is behind the host's, or a minute ahead. */
static void set_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (session.time <= t.tv_sec && t.tv_sec < session.time + 60)
		return;
	t.tv_sec = session.time;
	t.tv_nsec = 0;
	if (session.time && clock_settime(CLOCK_REALTIME, &t))
		fatal("clock");
}

static void mount_own(void)
{
	mount_or_die("dev", "/dev", "devtmpfs", MS_NOSUID, NULL);
	mount_or_die("proc", "/proc", "proc", 0, NULL);
	mount_or_die("sys", "/sys", "sysfs", 0, NULL);
	mkdir("/dev/pts", 0755);
	mount_or_die("pts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		     "ptmxmode=666,gid=5,mode=620");
	symlink("/proc/self/fd", "/dev/fd");
	mount_or_die("cgroup", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static void make_cgroups(void)
{
	static const char *const groups[] = {CGROUP_AGENT, CGROUP_KEEP, CGROUP_LINK};
	for (int i = 0; i < 3; i++)
		if (mkdir(groups[i], 0755))
			fatal(groups[i]);
	/* a fork bomb must leave room for what watches it; without the controller it may not */
	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+pids"))
		write_text(CGROUP_AGENT "/pids.max", "8192");
}

/* Settings that an older or newer kernel may lack are no reason to stop. */
static void harden(void)
{
	static const char *const settings[][2] = {
		{"/proc/sys/kernel/dmesg_restrict", "1"},
		{"/proc/sys/kernel/kptr_restrict", "2"},
		{"/proc/sys/kernel/unprivileged_bpf_disabled", "2"},
		{"/proc/sys/kernel/perf_event_paranoid", "3"},
		{"/proc/sys/kernel/yama/ptrace_scope", "1"},
		{"/proc/sys/kernel/sysrq", "0"},
		{"/proc/sys/fs/protected_hardlinks", "1"},
		{"/proc/sys/fs/protected_symlinks", "1"},
		{"/proc/sys/vm/swappiness", "10"},
	};
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		write_text(settings[i][0], settings[i][1]);
}

static void raise_loopback(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r))
		fatal("loopback");
	close(fd);
}

static int find_port(const char *wanted)
{
	int fd = -1;
	DIR *dir = opendir("/sys/class/virtio-ports");
	for (struct dirent *e; dir && fd < 0 && (e = readdir(dir));) {
		char path[320], name[64];
		snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", e->d_name);
		if (read_text(path, name, sizeof name) < 1 || strcmp(name, wanted))
			continue;
		snprintf(path, sizeof path, "/dev/%s", e->d_name);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	}
	if (dir)
		closedir(dir);
	return fd;
}

static void open_port(struct link *l, const char *name)
{
	int64_t end = now_ms() + PORT_MS;
	int fd;
	while ((fd = find_port(name)) < 0) {
		errno = ENODEV;
		if (now_ms() > end)
			fatal(name);
		nap_ms(2);
	}
	link_init(l, fd, session.token);
}

static void prepare(void)
{
	struct rlimit files = {.rlim_cur = 4096, .rlim_max = 524288};
	umask(022);
	chmod("/", 0755); /* a tmpfs begins open to all, which sshd's strict modes refuse */
	mount_own();
	read_session();
	set_clock();
	if (sethostname(session.hostname, strlen(session.hostname)))
		fatal("hostname");
	if (setrlimit(RLIMIT_NOFILE, &files))
		fatal("rlimit");
	make_cgroups();
	harden();
	raise_loopback();
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
}

static _Noreturn void init(void)
{
	static struct link control, bulk;
	prepare();
	relay_start_sshd();
	load_modules();
	mount_disks();
	pid_t holder = start_world(session.hostname);
	open_port(&control, "cloche.control");
	open_port(&bulk, "cloche.bulk");
	relay_run(&control, &bulk, holder);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	name = name ? name + 1 : argv[0];
	if (!strcmp(name, "enter"))
		return enter_main(argc, argv);
	if (!strcmp(name, "dtach"))
		return dtach_main(argc, argv);
	if (getpid() != 1)
		return 64;
	init();
}
