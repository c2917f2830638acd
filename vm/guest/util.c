/* Small things: the console, files of /proc and /sys, time. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Ends the machine: a reset, which QEMU's -no-reboot turns into its own end (microvm has no
 * power button to press). The console is drained first, or its last line would be lost. */
_Noreturn void machine_off(void)
{
	tcdrain(2);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

_Noreturn void fatal(const char *what)
{
	dprintf(2, "\nCLOCHE fatal %s: %s\n", what, strerror(errno));
	sync();
	if (getpid() == 1)
		machine_off();
	_exit(70);
}

bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

/* Reads a small file as a string without its last newline; -1 when there is none. */
ssize_t read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, text, room - 1);
	close(fd);
	if (n < 0)
		return -1;
	if (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = 0;
	return n;
}

int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void nap_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

/* Moves the calling process; "0" is the kernel's name for it. */
int move_to_cgroup(const char *cgroup)
{
	char path[128];
	snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
	return write_text(path, "0") ? 0 : -1;
}

uint8_t *put_le(uint8_t *to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, value >>= 8)
		*to++ = (uint8_t)value;
	return to;
}

uint64_t get_le(const uint8_t *from, size_t bytes)
{
	uint64_t value = 0;
	while (bytes--)
		value = value << 8 | from[bytes];
	return value;
}
