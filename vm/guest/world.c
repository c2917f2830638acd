/* Modules, disks, overlays, and the agent's world: its mounts and its first process. */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUIET (MS_NOSUID | MS_NODEV)
#define DISK_MS 10000
#define OVERLAY "redirect_dir=on,metacopy=off,index=off"

void mount_or_die(const char *from, const char *to, const char *type, unsigned long flags,
		  const char *options)
{
	if (mount(from, to, type, flags, options))
		fatal(to);
}

/* Is there a device that this module drives? `-` always; `pci`/`mmio` by bus; a number by virtio
 * device type. Loading a module costs 20 to 100 ms under emulation. */
static bool module_needed(const char *when)
{
	bool pci = !access("/sys/bus/pci/devices/0000:00:00.0", F_OK), found = false;
	if (!strcmp(when, "-"))
		return true;
	if (!strcmp(when, "pci"))
		return pci;
	if (!strcmp(when, "mmio"))
		return !pci;
	DIR *dir = opendir("/sys/bus/virtio/devices");
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		char path[320], id[16];
		snprintf(path, sizeof path, "/sys/bus/virtio/devices/%s/device", e->d_name);
		found = read_text(path, id, sizeof id) > 0 &&
			strtol(id, NULL, 16) == strtol(when, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void load_module(const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "/modules/%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
		fatal(path);
	close(fd);
}

/* /modules/order: `WHEN FILE` a line, each after all that it depends on. */
void load_modules(void)
{
	char name[64], when[16];
	FILE *f = fopen("/modules/order", "re");
	if (!f)
		fatal("/modules/order");
	while (fscanf(f, "%15s %63s", when, name) == 2)
		if (module_needed(when))
			load_module(name);
	fclose(f);
}

static bool find_disk(const char *serial, char *device, size_t room)
{
	bool found = false;
	DIR *dir = opendir("/sys/block");
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		char path[320], text[32];
		snprintf(path, sizeof path, "/sys/block/%s/serial", e->d_name);
		found = read_text(path, text, sizeof text) > 0 && !strcmp(text, serial);
		if (found)
			snprintf(device, room, "/dev/%s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void mount_disk(const char *serial, const char *to, const char *type, unsigned long flags,
		       const char *options)
{
	char device[320];
	int64_t end = now_ms() + DISK_MS;
	while (!find_disk(serial, device, sizeof device)) {
		errno = ENODEV;
		if (now_ms() > end)
			fatal(serial);
		nap_ms(2);
	}
	mkdir(to, 0755);
	mount_or_die(device, to, type, flags | QUIET, options);
}

static void make_dir(const char *path, mode_t mode, uid_t owner)
{
	if (mkdir(path, mode) && errno != EEXIST)
		fatal(path);
	if (chmod(path, mode) || chown(path, owner, owner))
		fatal(path);
}

void mount_disks(void)
{
	mount_disk("base", "/base", "squashfs", MS_RDONLY, NULL);
	mount_disk("ws0", "/ws", "squashfs", MS_RDONLY, NULL);
	mount_disk("scratch", "/scratch", "ext4", MS_NOATIME, "commit=1");
	make_dir("/scratch/root", 0700, 0);
	make_dir("/scratch/root/work", 0700, 0);
	make_dir(ROOT_UPPER, 0755, 0);
	make_dir("/scratch/ws", 0700, 0);
	make_dir("/scratch/ws/work", 0700, 0);
	make_dir(WORKSPACE_UPPER, 0755, AGENT_UID);
	mkdir("/world", 0755);
	mount_or_die("world", "/world", "overlay", QUIET,
		     "lowerdir=/base,upperdir=" ROOT_UPPER ",workdir=/scratch/root/work," OVERLAY);
	mount_or_die("workspace", "/world/workspace", "overlay", QUIET,
		     "lowerdir=/ws,upperdir=" WORKSPACE_UPPER ",workdir=/scratch/ws/work," OVERLAY);
	mount_or_die("run", "/world/run", "tmpfs", QUIET, "mode=755");
	mount_or_die("tmp", "/world/tmp", "tmpfs", QUIET, "mode=1777");
	make_dir("/world/run/user", 0755, 0);
	make_dir("/world/run/user/1000", 0700, AGENT_UID);
}

static void make_devices(void)
{
	static const struct {
		const char *path;
		unsigned major, minor;
	} nodes[] = {
		{"/world/dev/null", 1, 3},   {"/world/dev/zero", 1, 5},
		{"/world/dev/full", 1, 7},   {"/world/dev/random", 1, 8},
		{"/world/dev/urandom", 1, 9}, {"/world/dev/tty", 5, 0},
	};
	static const char *const links[][2] = {
		{"pts/ptmx", "/world/dev/ptmx"},	    {"/proc/self/fd", "/world/dev/fd"},
		{"/proc/self/fd/0", "/world/dev/stdin"},    {"/proc/self/fd/1", "/world/dev/stdout"},
		{"/proc/self/fd/2", "/world/dev/stderr"},
	};
	mount_or_die("dev", "/world/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
	umask(0);
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
		if (mknod(nodes[i].path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)))
			fatal(nodes[i].path);
	umask(022);
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		if (symlink(links[i][0], links[i][1]))
			fatal(links[i][1]);
	make_dir("/world/dev/pts", 0755, 0);
	make_dir("/world/dev/shm", 01777, 0);
	/* the toolkit's own, so that the name of a terminal means the same on both sides */
	mount_or_die("/dev/pts", "/world/dev/pts", NULL, MS_BIND, NULL);
	mount_or_die("shm", "/world/dev/shm", "tmpfs", QUIET, "mode=1777");
}

static void cover(const char *path)
{
	mount_or_die(path, path, NULL, MS_BIND, NULL);
	mount_or_die(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET | MS_NOEXEC, NULL);
}

static void name_host(const char *hostname)
{
	static const char *const files[] = {"hosts", "hostname"};
	for (size_t i = 0; i < 2; i++) {
		char kept[64], seen[64];
		snprintf(kept, sizeof kept, "/run/world-%s", files[i]);
		snprintf(seen, sizeof seen, "/world/etc/%s", files[i]);
		FILE *f = fopen(kept, "we");
		if (!f)
			fatal(kept);
		if (i == 0)
			fprintf(f, "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost\n", hostname);
		else
			fprintf(f, "%s\n", hostname);
		fclose(f);
		mount_or_die(kept, seen, NULL, MS_BIND, NULL);
		cover(seen);
	}
}

/* The rest of the world's mounts, made in its own namespace, whose root it then becomes: the
 * toolkit lies under it, out of reach of any path. */
static void furnish(const char *hostname)
{
	static const char *const unseen[] = {"/scratch", "/base", "/ws", "/sys", "/dev", "/proc"};
	make_devices();
	name_host(hostname);
	mount_or_die("proc", "/world/proc", "proc", QUIET | MS_NOEXEC, NULL);
	cover("/world/proc/sys");
	cover("/world/proc/sysrq-trigger");
	mount_or_die("sys", "/world/sys", "sysfs", MS_RDONLY | QUIET | MS_NOEXEC, NULL);
	for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
		umount2(unseen[i], MNT_DETACH); /* the overlays keep what they need of them */
	if (chdir("/world") || mount("/world", "/", NULL, MS_MOVE, NULL) || chroot(".") ||
	    chdir("/"))
		fatal("world root");
}

static _Noreturn void hold_world(void)
{
	sigset_t set;
	int signal_seen;
	prctl(PR_SET_NAME, "world");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		sigwait(&set, &signal_seen);
	}
}

/* Starts the first process of the world's namespaces; it says when they are complete. */
pid_t start_world(const char *hostname)
{
	int ready[2];
	char text[32];
	if (pipe2(ready, O_CLOEXEC))
		fatal("pipe");
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		fatal("clone");
	if (!pid) {
		furnish(hostname);
		if (write(ready[1], "", 1) != 1)
			fatal("world pipe");
		syscall(SYS_close_range, 3, ~0u, 0);
		hold_world();
	}
	close(ready[1]);
	snprintf(text, sizeof text, "%d", pid);
	int fd = open(HOLDER_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || read(ready[0], text, 1) != 1)
		fatal("world");
	close(fd);
	close(ready[0]);
	return pid;
}
