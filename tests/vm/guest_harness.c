/* Runs the guest's relay, terminal and bulk server on the host: two sockets stand for the virtio
 * ports, the folder it is started in for the machine. `guest hold …` is `/bin/hold`; `guest place
 * WORLD PATH folder|file|fresh` finds a place as PID 1 does and says where it came to. Built with
 * sanitizers, without the calls that would reach the host (see guest_host.py). */
#include "guest.h"

static int find_place(char **argv) {
    char link[32], found[PATH_MAX];
    char *slash = strrchr(argv[1], '/');
    int root = open(argv[0], O_PATH | O_DIRECTORY), fd;
    if (strcmp(argv[2], "fresh")) {
        fd = place(root, argv[1], !strcmp(argv[2], "folder"));
    } else {
        *slash = 0;
        fd = place_fresh(root, argv[1], slash + 1);
        if (fd >= 0 && dprintf(fd, "fresh") != 5) return 1;
    }
    if (fd < 0) return errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, found, sizeof found);
    printf("%.*s", (int)n, found);
    return 0;
}

int main(int argc, char **argv) {
    static struct link control, bulk;
    if (argc > 1 && !strcmp(argv[1], "hold")) return hold_main(argc - 1, argv + 1);
    if (argc == 5 && !strcmp(argv[1], "place")) return find_place(argv + 2);
    if (argc != 4) return 64;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* as PID 1 is everybody's */
    link_init(&control, atoi(argv[1]), argv[3]);
    link_init(&bulk, atoi(argv[2]), argv[3]);
    start_sshd();
    terminal_listen(TERMINAL_SOCKET);
    relay_run(&control, &bulk, -1);
}

int harness_reboot(int how) {
    (void)how;
    _exit(0);
}

int harness_clock(clockid_t clock, const struct timespec *t) {
    (void)clock;
    (void)t;
    return 0;
}

int harness_chroot(const char *path) {
    (void)path;
    return 0;
}

void become(bool root) { (void)root; }
