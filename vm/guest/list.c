/* The listing of an upper dir: every entry with what overlayfs left on it, parents first. */
#include "guest.h"

#define BATCH (64 * 1024)
#define NAME_ROOM 4096 /* the kernel's own limit for a path */
#define ENTRY_MAX (3 * NAME_ROOM + 128)
#define DEPTH_MAX 256 /* open directories at a time */
enum { FLAG_OPAQUE = 1, FLAG_REDIRECT = 2 };

struct listing {
    struct bulk *bulk;
    uint32_t count, max_entries;
    uint64_t bytes, max_bytes;
    bool truncated;
    size_t used, path_n;
    uint8_t batch[BATCH];
    char path[NAME_ROOM];
};

struct extra { /* what an entry has besides its stat */
    char kind;
    uint8_t flags;
    size_t redirect_n, target_n;
    char redirect[NAME_ROOM], target[NAME_ROOM];
};

static bool flush(struct listing *w) {
    size_t n = w->used;
    w->used = 0;
    return !n || bulk_send(w->bulk, 'e', "", 0, w->batch, n);
}

static uint8_t *put_text(uint8_t *to, const char *text, size_t n) {
    return (uint8_t *)memcpy(put_le(to, n, 2), text, n) + n;
}

static bool emit(struct listing *w, const struct stat *st, const struct extra *x) {
    if (BATCH - w->used < ENTRY_MAX && !flush(w)) return false;
    uint8_t *start = w->batch + w->used, *to = put_text(start, w->path, w->path_n);
    const uint64_t fields[][2] = {
        {(uint8_t)x->kind, 1}, {x->flags, 1}, {st->st_mode, 4}, {st->st_uid, 4}, {st->st_nlink, 4},
        {st->st_ino, 8}, {(uint64_t)st->st_size, 8}, {(uint64_t)st->st_blocks * 512, 8},
        {nanoseconds(st->st_mtim), 8}, {nanoseconds(st->st_ctim), 8},
    };
    for (size_t i = 0; i < LENGTH(fields); i++) to = put_le(to, fields[i][0], fields[i][1]);
    to = put_text(put_text(to, x->redirect, x->redirect_n), x->target, x->target_n);
    w->used += (size_t)(to - start);
    w->bytes += (size_t)(to - start);
    w->count++;
    return true;
}

static char kind_of(const struct stat *st) {
    return S_ISREG(st->st_mode)                          ? 'f'
           : S_ISDIR(st->st_mode)                        ? 'd'
           : S_ISLNK(st->st_mode)                        ? 'l'
           : S_ISCHR(st->st_mode) && !st->st_rdev ? 'w'
                                                         : 's';
}

static void overlay_marks(int fd, struct extra *x) {
    char opaque = 0;
    if (fgetxattr(fd, "trusted.overlay.opaque", &opaque, 1) == 1 && opaque == 'y')
        x->flags |= FLAG_OPAQUE;
    ssize_t n = fgetxattr(fd, "trusted.overlay.redirect", x->redirect, NAME_ROOM);
    if (n > 0) x->flags |= FLAG_REDIRECT;
    x->redirect_n = n > 0 ? (size_t)n : 0;
}

static bool walk(struct listing *w, int fd, unsigned depth);

/* One entry; a directory with all that is in it. What vanishes meanwhile is simply not there. */
static bool entry(struct listing *w, int parent, const char *name, unsigned depth) {
    static struct extra x; /* done with before any recursion */
    struct stat st;
    ssize_t target = 0;
    int fd = -1;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW)) return true;
    x.kind = kind_of(&st);
    x.flags = 0;
    x.redirect_n = 0;
    if (x.kind == 'l' && (target = readlinkat(parent, name, x.target, NAME_ROOM)) < 0) return true;
    x.target_n = (size_t)target;
    if (x.kind == 'd') {
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st)) {
            w->truncated |= errno != ENOENT;
            return true;
        }
        overlay_marks(fd, &x);
    }
    bool alive = emit(w, &st, &x);
    if (fd < 0) return alive;
    if (alive && depth < DEPTH_MAX) return walk(w, fd, depth + 1);
    w->truncated = true;
    close(fd);
    return alive;
}

/* Appends a name to the path; false when it does not fit. */
static bool path_push(struct listing *w, size_t parent_n, const char *name) {
    int n = snprintf(w->path + parent_n, NAME_ROOM - parent_n, "%s%s", parent_n ? "/" : "", name);
    w->path_n = parent_n + (size_t)n;
    return w->path_n < NAME_ROOM;
}

/* Lists the directory `fd`, which it closes. */
static bool walk(struct listing *w, int fd, unsigned depth) {
    DIR *dir = fdopendir(fd);
    size_t parent_n = w->path_n;
    bool alive = true, full = false;
    if (!dir) fatal("memory");
    for (struct dirent *e; alive && !full && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        full = w->count >= w->max_entries || w->bytes >= w->max_bytes;
        bool fits = !full && path_push(w, parent_n, e->d_name);
        w->truncated |= !fits;
        if (fits) alive = entry(w, dirfd(dir), e->d_name, depth);
    }
    w->path_n = parent_n;
    closedir(dir);
    return alive;
}

bool bulk_list(struct bulk *b, int root, uint32_t max_entries, uint64_t max_bytes) {
    static struct listing w;
    uint8_t end[5];
    int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) fatal("upper");
    w.bulk = b;
    w.bytes = w.count = w.truncated = 0;
    w.used = w.path_n = 0;
    w.max_entries = max_entries;
    w.max_bytes = max_bytes;
    if (!walk(&w, fd, 0) || !flush(&w)) return false;
    put_le(put_le(end, w.count, 4), w.truncated, 1);
    return bulk_send(b, 'z', end, sizeof end, "", 0);
}
