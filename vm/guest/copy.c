/* Copies between the host and the agent's world, as a stream of records on a socket.
 *
 * One process a copy, in a chroot of the world, as the agent or as the world's root with no more
 * than its capabilities. It follows no link but on the way to where the user pointed, and what it
 * writes gets its name only when it is whole. A record is
 *
 *   u8 kind | u32 mode | u64 size | u16 n | path        (little endian)
 *
 * d folder, f file (then chunks: u32 n | bytes, the last one empty), l link, s special file: both
 * only told, x error (mode: its number), z end (size: how many files). */
#include "guest.h"

#define CHUNK (64 * 1024)
#define PATH_ROOM 4096
#define DEPTH_MAX 128 /* open directories at a time */
#define BROKEN 0xffffffffu /* in place of a chunk's length: the file could not be read on */
#define HEAD 15
#define ACCESS 0777 /* no setuid, no setgid, no sticky bit: neither way */

struct open_how { uint64_t flags, mode, resolve; };
#define RESOLVE_BELOW 0x0e /* no magic links, no symlinks, beneath */

static FILE *host, *input; /* one socket; a stream that does both would have to be turned round */
static uint64_t files;
static uint8_t chunk[CHUNK];

static void put(const void *bytes, size_t n) {
    if (n && fwrite(bytes, n, 1, host) != 1) _exit(1); /* nobody listens any more */
}

static void record(char kind, uint32_t mode, uint64_t size, const char *path) {
    uint8_t head[HEAD];
    size_t n = strlen(path);
    uint8_t *to = put_le(head, (uint8_t)kind, 1);
    put_le(put_le(put_le(to, mode, 4), size, 8), n, 2);
    put(head, sizeof head);
    put(path, n);
}

static _Noreturn void done(void) {
    _exit(fflush(host) ? 1 : 0);
}

static _Noreturn void give_up(int code, const char *path) {
    record('x', (uint32_t)code, 0, path);
    done();
}

/* -- out of the guest --------------------------------------------------------------------- */

static void out_content(int fd) {
    uint8_t length[4];
    ssize_t n;
    do {
        n = read(fd, chunk, sizeof chunk);
        put_le(length, n < 0 ? BROKEN : (uint64_t)n, 4);
        put(length, sizeof length);
        if (n > 0) put(chunk, (size_t)n);
    } while (n > 0);
}

static void out_entry(int parent, const char *name, char *path, unsigned depth);

/* Sends what is in the directory `fd`, which it closes. */
static void out_folder(int fd, char *path, unsigned depth) {
    size_t n = strlen(path);
    DIR *dir = fdopendir(fd);
    if (!dir) give_up(errno, path);
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        int more = snprintf(path + n, PATH_ROOM - n, "%s%s", n ? "/" : "", e->d_name);
        if (n + (size_t)more < PATH_ROOM) out_entry(dirfd(dir), e->d_name, path, depth);
        path[n] = 0;
        if (n + (size_t)more >= PATH_ROOM) record('x', ENAMETOOLONG, 0, path);
    }
    closedir(dir);
}

static void out_entry(int parent, const char *name, char *path, unsigned depth) {
    struct stat st;
    bool gone = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW);
    bool folder = !gone && S_ISDIR(st.st_mode);
    if (gone || !(folder || S_ISREG(st.st_mode))) {
        if (gone) record('x', (uint32_t)errno, 0, path);
        else record(S_ISLNK(st.st_mode) ? 'l' : 's', st.st_mode & ACCESS, 0, path);
        return;
    }
    int kind = folder ? O_DIRECTORY : O_NONBLOCK;
    int fd = depth > DEPTH_MAX ? -1 : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind);
    if (depth > DEPTH_MAX) errno = ELOOP;
    if (fd < 0 || fstat(fd, &st)) {
        record('x', (uint32_t)errno, 0, path);
    } else if (folder) {
        record('d', st.st_mode & ACCESS, 0, path);
        out_folder(fd, path, depth + 1);
        return;
    } else if (!S_ISREG(st.st_mode)) { /* another file since it was looked at */
        record('s', st.st_mode & ACCESS, 0, path);
    } else {
        record('f', st.st_mode & ACCESS, (uint64_t)st.st_size, path);
        out_content(fd);
        files++;
    }
    if (fd >= 0) close(fd);
}

/* -- into the guest ----------------------------------------------------------------------- */

static void take(void *to, size_t n) {
    if (n && fread(to, n, 1, input) != 1) _exit(1);
}

/* The folder that the copy goes to, and the name it gets there: `to` itself, if that is no folder
 * yet, else the source's own (then it is empty). */
static int in_base(const char *to, char *name) {
    static char parent[PATH_ROOM];
    int fd = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);
    name[0] = 0;
    if (fd >= 0) return fd;
    snprintf(parent, sizeof parent, "%s", to);
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/';) parent[--n] = 0;
    char *slash = strrchr(parent, '/');
    snprintf(name, PATH_ROOM, "%s", slash ? slash + 1 : parent);
    if (slash) slash[slash == parent] = 0;
    fd = open(slash ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !name[0] || !strcmp(name, ".") || !strcmp(name, "..")) give_up(errno, to);
    return fd;
}

/* Opens the folder that holds `path`; cuts the path there and returns the name after it. */
static int in_parent(int base, char *path, const char **name) {
    struct open_how how = {O_PATH | O_DIRECTORY | O_CLOEXEC, 0, RESOLVE_BELOW};
    char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (slash) *slash = 0;
    int fd = (int)syscall(SYS_openat2, base, slash ? path : ".", &how, sizeof how);
    int code = errno;
    if (slash) *slash = '/';
    if (fd < 0) give_up(code, path);
    return fd;
}

static void in_folder(int parent, const char *name, uint32_t mode, const char *path) {
    struct stat st;
    if (!mkdirat(parent, name, (mode & ACCESS) | 0700)) return;
    int code = errno;
    bool there = !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
    if (!there) give_up(code, path);
}

static void in_file(int parent, const char *name, uint32_t mode, const char *path) {
    char fresh[64];
    uint8_t length[4];
    int code = 0;
    snprintf(fresh, sizeof fresh, ".cloche-copy-%d-%llu", getpid(), (unsigned long long)files);
    int fd = openat(parent, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) give_up(errno, path);
    for (size_t n; !code; ) {
        take(length, sizeof length);
        if (!(n = get_le(length, 4))) break;
        if (n > sizeof chunk) code = n == BROKEN ? EIO : EPROTO;
        else take(chunk, n);
        for (size_t at = 0; !code && at < n;) {
            ssize_t wrote = write(fd, chunk + at, n - at);
            if (wrote < 0 && errno != EINTR) code = errno;
            at += wrote > 0 ? (size_t)wrote : 0;
        }
    }
    if (!code && (fchmod(fd, mode & ACCESS) || close(fd) || renameat(parent, fresh, parent, name)))
        code = errno;
    if (!code && ++files) return;
    unlinkat(parent, fresh, 0);
    give_up(code, path);
}

static bool proper(const char *path, size_t n) {
    if (!n || n >= PATH_ROOM || memchr(path, 0, n)) return false;
    for (size_t at = 0, part; at <= n; at += part + 1) {
        part = strcspn(path + at, "/");
        if (!part || (path[at] == '.' && (part == 1 || (part == 2 && path[at + 1] == '.'))))
            return false;
    }
    return true;
}

static _Noreturn void copy_in(const char *to) {
    static char name[PATH_ROOM], sent[PATH_ROOM], path[2 * PATH_ROOM];
    uint8_t head[HEAD];
    int base = in_base(to, name);
    for (;;) {
        take(head, sizeof head);
        size_t n = get_le(head + 13, 2);
        uint32_t mode = (uint32_t)get_le(head + 1, 4);
        const char *last;
        if (head[0] == 'z') break;
        if (n >= sizeof sent) give_up(ENAMETOOLONG, to);
        take(sent, n);
        sent[n] = 0;
        if (!proper(sent, n) || !strchr("df", head[0])) give_up(EINVAL, to);
        size_t top = name[0] ? strcspn(sent, "/") : 0;
        int wide = snprintf(path, sizeof path, "%s%s", name, sent + top);
        if (wide >= PATH_ROOM) give_up(ENAMETOOLONG, to);
        int parent = in_parent(base, path, &last);
        if (head[0] == 'd') in_folder(parent, last, mode, path);
        else in_file(parent, last, mode, path);
        close(parent);
    }
    record('z', 0, files, "");
    done();
}

static _Noreturn void copy_out(const char *from) {
    static char path[PATH_ROOM];
    out_entry(AT_FDCWD, from, path, 0);
    record('z', 0, files, "");
    done();
}

/* Starts a copy and returns the bulk server's end of its socket, or -1. */
int copy_start(const char *path, unsigned flags, pid_t *pid) {
    int pair[2], room = 1 << 20;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return -1;
    for (size_t i = 0; i < LENGTH(pair); i++)
        setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    if ((*pid = fork()) < 0) {
        close(pair[0]);
        close(pair[1]);
        return -1;
    }
    if (*pid) {
        close(pair[1]);
        return pair[0];
    }
    if (dup2(pair[1], 3) != 3) _exit(1);
    syscall(SYS_close_range, 4, ~0u, 0);
    host = fdopen(3, "w");
    input = fdopen(3, "r");
    if (!host || !input || chroot(WORLD) || chdir(WORKSPACE)) _exit(1);
    become(flags & COPY_ROOT);
    write_text("/proc/self/oom_score_adj", "500");
    umask(0);
    signal(SIGPIPE, SIG_IGN);
    if (flags & COPY_IN) copy_in(path);
    copy_out(path);
}
