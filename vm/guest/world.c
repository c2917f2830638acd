/* Modules, disks, overlays, and the agent's world: its mounts and its first process. */
#include "guest.h"

#define PLAIN (MS_NOSUID | MS_NODEV)
#define BARE (PLAIN | MS_NOEXEC)
#define COVER (MS_REMOUNT | MS_BIND | MS_RDONLY | BARE)
#define NODES (MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC) /* devices still open */
#define EXT4 "commit=1,noinit_itable,no_prefetch_block_bitmaps" /* nothing runs in the background */
#define DISK_MS 3000 /* drivers find their disks within 200 ms even under emulation */
#define OVERLAY(lower, place)                                                                      \
    "lowerdir=" lower ",upperdir=" place "/upper,workdir=" place                                   \
    "/work,redirect_dir=on,metacopy=off,index=off"

struct mounting { const char *from, *to, *type; unsigned long flags; const char *options; };

/* Mounts in the world itself, whose paths are not to be trusted; `from` a file it covers a file. */
static bool mount_in_world(const struct mounting *m, unsigned long flags) {
    char name[32];
    struct stat st;
    const char *model = m->flags & MS_REMOUNT ? m->to : m->flags & MS_BIND ? m->from : "/";
    int root = open(WORLD, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool known = root >= 0 && !lstat(model, &st);
    int fd = known ? place(root, m->to + sizeof WORLD, S_ISDIR(st.st_mode)) : -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    bool done = fd >= 0 && !mount(m->from, name, m->type, flags, m->options);
    int code = errno;
    if (fd >= 0) close(fd);
    if (root >= 0) close(root);
    errno = code;
    return done;
}

static void mount_all(const struct mounting *m, size_t n) {
    for (; n--; m++) {
        bool tmpfs = m->type && !strcmp(m->type, "tmpfs");
        unsigned long flags = m->flags | (tmpfs && strict ? MS_NOEXEC : 0);
        bool inside = !strncmp(m->to, WORLD "/", sizeof WORLD);
        bool done = inside ? mount_in_world(m, flags)
                           : !mount(m->from, m->to, m->type, flags, m->options);
        if (!done) fatal(m->to);
    }
}

/* /modules/order: `WHEN FILE` a line, each after all that it depends on. WHEN is `-` for always,
 * `pci` or `mmio` for a bus, or a virtio device type: a module costs 20 to 100 ms to load under
 * emulation. */
static bool module_needed(const char *when) {
    bool pci = !access("/sys/bus/pci/devices/0000:00:00.0", F_OK);
    return !strcmp(when, "-") || !strcmp(when, pci ? "pci" : "mmio") ||
           sys_find("/sys/bus/virtio/devices", "device", when, NULL, 0);
}

void load_modules(void) {
    char name[64], when[16], path[128];
    FILE *f = fopen("/modules/order", "re");
    if (!f) fatal("modules");
    while (fscanf(f, "%15s %63s", when, name) == 2) {
        if (!module_needed(when)) continue;
        snprintf(path, sizeof path, "/modules/%s", name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)) fatal(name);
        close(fd);
    }
    fclose(f);
}

/* The toolkit's own file systems. */
void mount_own(void) {
    static const struct mounting own[] = {
        {"dev", "/dev", "devtmpfs", MS_NOSUID, NULL},
        {"proc", "/proc", "proc", 0, NULL},
        {"sys", "/sys", "sysfs", 0, NULL},
        {"cgroup", "/sys/fs/cgroup", "cgroup2", BARE, NULL},
    };
    mount_all(own, LENGTH(own));
    mkdir("/dev/pts", 0755);
    if (mount("pts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=666,gid=5,mode=620"))
        fatal("/dev/pts");
}

/* Disks are known by their serials, for their order is the machine's affair. */
static void mount_disk(const char *serial, struct mounting m) {
    char path[320];
    int64_t end = now_ms() + DISK_MS;
    while (!sys_find("/sys/block", "serial", serial, path, sizeof path)) {
        errno = ENODEV;
        if (now_ms() > end) fatal(serial);
        nap_ms(2);
    }
    m.from = path;
    mount_all(&m, 1);
}

static void make_folder(const char *path, mode_t mode, uid_t owner) {
    if ((mkdir(path, mode) && errno != EEXIST) || chmod(path, mode) || chown(path, owner, owner))
        fatal(path);
}

/* An image may leave root's home open to all. */
static void close_home(void) {
    struct stat st;
    int fd = open("/world/root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool open_home = fd >= 0 && !fstat(fd, &st) && st.st_mode & 077;
    if (open_home && fchmod(fd, 0700)) fatal("/world/root");
    if (fd >= 0) close(fd);
}

void mount_disks(void) {
    static const struct mounting layers[] = {
        {"world", "/world", "overlay", PLAIN, OVERLAY("/base", "/scratch/root")},
        {"workspace", "/world/workspace", "overlay", PLAIN, OVERLAY("/ws", "/scratch/ws")},
        {"run", "/world/run", "tmpfs", PLAIN, "mode=755,size=10%"},
        {"tmp", "/world/tmp", "tmpfs", PLAIN, "mode=1777,size=40%"},
    };
    mount_disk("base", (struct mounting){.to = "/base", "squashfs", MS_RDONLY | PLAIN, NULL});
    mount_disk("ws0", (struct mounting){.to = "/ws", "squashfs", MS_RDONLY | PLAIN, NULL});
    mount_disk("scratch",
               (struct mounting){.to = "/scratch", "ext4", MS_NOATIME | PLAIN, EXT4});
    make_folder("/scratch/root", 0700, 0);
    make_folder("/scratch/root/work", 0700, 0);
    make_folder(ROOT_UPPER, 0755, 0);
    make_folder("/scratch/ws", 0700, 0);
    make_folder("/scratch/ws/work", 0700, 0);
    make_folder(WORKSPACE_UPPER, 0755, AGENT_UID);
    mount_all(layers, LENGTH(layers));
    close_home();
    make_folder("/world/run/user", 0755, 0);
    make_folder("/world/run/user/1000", 0700, AGENT_UID);
}

/* The rest of the world's mounts, made in its own namespace, whose root it then becomes: the
 * toolkit lies under it, out of reach of any path. */
static void furnish(void) {
    static const struct mounting rest[] = {
        {"/nodes", "/world/dev", NULL, MS_BIND, NULL},
        /* the toolkit's terminals, so that a name means the same on both sides */
        {"/dev/pts", "/world/dev/pts", NULL, MS_BIND, NULL},
        {"shm", "/world/dev/shm", "tmpfs", PLAIN, "mode=1777,size=20%"},
        /* it is the toolkit's memory, which nobody in the world may fill; what lies on it stays */
        {NULL, "/world/dev", NULL, NODES, NULL},
        {"/session/hosts", "/world/etc/hosts", NULL, MS_BIND, NULL},
        {"/session/hostname", "/world/etc/hostname", NULL, MS_BIND, NULL},
        /* of processes that are not its own the agent sees nothing; group 0, root's, sees all */
        {"proc", "/world/proc", "proc", BARE, "hidepid=2,gid=0"},
        {"/world/proc/sys", "/world/proc/sys", NULL, MS_BIND, NULL},
        {NULL, "/world/proc/sys", NULL, COVER, NULL},
        {"/world/proc/sysrq-trigger", "/world/proc/sysrq-trigger", NULL, MS_BIND, NULL},
        {NULL, "/world/proc/sysrq-trigger", NULL, COVER, NULL},
        {"sys", "/world/sys", "sysfs", MS_RDONLY | BARE, NULL},
    };
    static const char *const unseen[] = {"/scratch", "/base", "/ws", "/sys", "/dev", "/proc"};
    mount_all(rest, LENGTH(rest));
    take_authorities();
    for (size_t i = 0; i < LENGTH(unseen); i++)
        if (umount2(unseen[i], MNT_DETACH)) fatal(unseen[i]); /* overlays keep what they need */
    if (chdir("/world") || mount("/world", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
        fatal("world");
    name_server();
    give_authorities();
}

static _Noreturn void hold_world(void) {
    sigset_t set;
    prctl(PR_SET_NAME, "world");
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int seen;; sigwait(&set, &seen))
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
}

/* Starts the first process of the world's namespaces and waits until they are complete. */
pid_t start_world(void) {
    int ready[2], fd = open(HOLDER_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char byte = 0;
    if (fd < 0 || pipe2(ready, O_CLOEXEC)) fatal("world");
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
    if (!pid) {
        furnish();
        if (write(ready[1], &byte, 1) != 1) fatal("world");
        syscall(SYS_close_range, 3, ~0u, 0);
        hold_world();
    }
    close(ready[1]);
    if (pid < 0 || dprintf(fd, "%d", pid) < 0 || read(ready[0], &byte, 1) != 1) fatal("world");
    close(ready[0]);
    close(fd);
    return pid;
}
