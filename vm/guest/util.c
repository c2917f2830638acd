/* Small things: the console, files of /proc and /sys, time, numbers in frames. */
#include "guest.h"

/* Ends the machine by a reset, which QEMU's -no-reboot turns into its own end (microvm has no
 * power button). The console is drained first, or its last line would be lost. */
_Noreturn void machine_off(void) {
    tcdrain(2);
    reboot(RB_AUTOBOOT);
    for (;;) pause();
}

_Noreturn void fatal(const char *what) {
    dprintf(2, "\nCLOCHE fatal %s: %s\n", what, strerror(errno));
    sync();
    if (getpid() == 1) machine_off();
    _exit(70);
}

bool write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool all = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return all;
}

/* Reads a small file as a string without its last newline; -1 when there is none. */
ssize_t read_text(const char *path, char *text, size_t room) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
    if (fd >= 0) close(fd);
    if (n > 0 && text[n - 1] == '\n') n--;
    if (n >= 0) text[n] = 0;
    return n;
}

/* Finds the member of a sysfs folder whose `file` says `wanted`. */
bool sys_find(const char *folder, const char *file, const char *wanted, char *name, size_t room) {
    char path[512], text[64];
    bool found = false;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, e->d_name, file);
        found = read_text(path, text, sizeof text) > 0 && !strcmp(text, wanted);
        if (found && name) snprintf(name, room, "/dev/%s", e->d_name);
    }
    if (dir) closedir(dir);
    return found;
}

int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void nap_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Moves the calling process; "0" is the kernel's name for it. */
bool join_cgroup(const char *name) {
    char path[128];
    snprintf(path, sizeof path, CGROUP "%s/cgroup.procs", name);
    return write_text(path, "0");
}

uint8_t *put_le(uint8_t *to, uint64_t value, size_t bytes) {
    for (; bytes--; value >>= 8) *to++ = (uint8_t)value;
    return to;
}

uint64_t get_le(const uint8_t *from, size_t bytes) {
    uint64_t value = 0;
    while (bytes--) value = value << 8 | from[bytes];
    return value;
}

uint64_t nanoseconds(struct timespec t) {
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
