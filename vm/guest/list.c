/* The listing of an upper dir: every entry with what overlayfs left on it, parents first. */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BATCH (64 * 1024)
#define NAME_ROOM 4096                      /* the kernel's own limit for a path */
#define ENTRY_MAX (3 * NAME_ROOM + 128)
#define DEPTH_MAX 256                       /* open directories at a time */
#define FLAG_OPAQUE 1
#define FLAG_REDIRECT 2

struct listing {
	struct bulk *bulk;
	uint32_t count, max_entries;
	uint64_t bytes, max_bytes;
	bool truncated;
	size_t used;
	uint8_t batch[BATCH];
	size_t path_n;
	char path[NAME_ROOM];
};

struct extra { /* what an entry has besides its stat */
	char kind;
	uint8_t flags;
	size_t redirect_n, target_n;
	char redirect[NAME_ROOM], target[NAME_ROOM];
};

static bool flush(struct listing *w)
{
	size_t n = w->used;
	w->used = 0;
	return !n || bulk_send(w->bulk, 'e', NULL, 0, w->batch, n);
}

static uint8_t *put_text(uint8_t *to, const char *text, size_t n)
{
	to = put_le(to, n, 2);
	memcpy(to, text, n);
	return to + n;
}

static uint8_t *put_time(uint8_t *to, struct timespec t)
{
	return put_le(to, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, 8);
}

static bool emit(struct listing *w, const struct stat *st, const struct extra *x)
{
	if (BATCH - w->used < ENTRY_MAX && !flush(w))
		return false;
	uint8_t *start = w->batch + w->used, *to = put_text(start, w->path, w->path_n);
	*to++ = (uint8_t)x->kind;
	*to++ = x->flags;
	to = put_le(to, st->st_mode, 4);
	to = put_le(to, st->st_uid, 4);
	to = put_le(to, st->st_nlink, 4);
	to = put_le(to, st->st_ino, 8);
	to = put_le(to, (uint64_t)st->st_size, 8);
	to = put_le(to, (uint64_t)st->st_blocks * 512, 8);
	to = put_time(put_time(to, st->st_mtim), st->st_ctim);
	to = put_text(to, x->redirect, x->redirect_n);
	to = put_text(to, x->target, x->target_n);
	w->used += (size_t)(to - start);
	w->bytes += (size_t)(to - start);
	w->count++;
	return true;
}

static char kind_of(const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return 'f';
	if (S_ISDIR(st->st_mode))
		return 'd';
	if (S_ISLNK(st->st_mode))
		return 'l';
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0) ? 'w' : 's';
}

static void overlay_marks(int fd, struct extra *x)
{
	char opaque = 0;
	if (fgetxattr(fd, "trusted.overlay.opaque", &opaque, 1) == 1 && opaque == 'y')
		x->flags |= FLAG_OPAQUE;
	ssize_t n = fgetxattr(fd, "trusted.overlay.redirect", x->redirect, NAME_ROOM);
	if (n > 0) {
		x->flags |= FLAG_REDIRECT;
		x->redirect_n = (size_t)n;
	}
}

static bool walk(struct listing *w, int fd, unsigned depth);

/* One entry; a directory with all that is in it. What vanishes meanwhile is simply not there. */
static bool entry(struct listing *w, int parent, const char *name, unsigned depth)
{
	static struct extra x; /* done with before any recursion */
	struct stat st;
	int fd = -1;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW))
		return true;
	x.kind = kind_of(&st);
	x.flags = 0;
	x.redirect_n = x.target_n = 0;
	if (x.kind == 'l') {
		ssize_t n = readlinkat(parent, name, x.target, NAME_ROOM);
		if (n < 0)
			return true;
		x.target_n = (size_t)n;
	}
	if (x.kind == 'd') {
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st)) {
			w->truncated |= errno != ENOENT;
			return true;
		}
		overlay_marks(fd, &x);
	}
	bool alive = emit(w, &st, &x);
	if (fd >= 0 && depth < DEPTH_MAX)
		return alive && walk(w, fd, depth + 1);
	if (fd >= 0) {
		w->truncated = true;
		close(fd);
	}
	return alive;
}

/* Lists the directory `fd`, which it closes. */
static bool walk(struct listing *w, int fd, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	if (!dir) {
		w->truncated = true;
		return !close(fd);
	}
	size_t parent_n = w->path_n;
	bool alive = true;
	for (struct dirent *e; alive && (e = readdir(dir));) {
		size_t n = strlen(e->d_name), slash = parent_n ? 1 : 0;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (w->count >= w->max_entries || w->bytes >= w->max_bytes) {
			w->truncated = true;
			break;
		}
		if (parent_n + slash + n >= NAME_ROOM) {
			w->truncated = true;
			continue;
		}
		if (slash)
			w->path[parent_n] = '/';
		memcpy(w->path + parent_n + slash, e->d_name, n);
		w->path_n = parent_n + slash + n;
		alive = entry(w, dirfd(dir), e->d_name, depth);
	}
	w->path_n = parent_n;
	closedir(dir);
	return alive;
}

bool bulk_list(struct bulk *b, int root, uint32_t max_entries, uint64_t max_bytes)
{
	static struct listing w;
	uint8_t end[5];
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w.bulk = b;
	w.count = 0;
	w.bytes = w.used = w.path_n = 0;
	w.max_entries = max_entries;
	w.max_bytes = max_bytes;
	w.truncated = fd < 0;
	if ((fd >= 0 && !walk(&w, fd, 0)) || !flush(&w))
		return false;
	put_le(put_le(end, w.count, 4), w.truncated, 1);
	return bulk_send(b, 'z', end, sizeof end, NULL, 0);
}
