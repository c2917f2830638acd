/* The bulk port: what changed in the upper dirs, and contents, as plain frames.
 *
 * Runs in a process of its own. Every path that it opens is the agent's choice, so nothing follows
 * a link, leaves the upper dir or waits for a fifo. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX (1024 * 1024)
#define REQUEST_MAX 4200 /* a path and its numbers; the longest request that makes sense */
#define CHUNK (64 * 1024)
#define FREEZE_MS 5000

/* from linux/openat2.h, which musl's headers do not carry */
struct open_how {
	uint64_t flags, mode, resolve;
};
#define RESOLVE_NO_XDEV 0x01
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS 0x04
#define RESOLVE_BENEATH 0x08

struct bulk {
	struct link *link;
	unsigned epoch;      /* counts connections: a command stops when its own is over */
	unsigned serving;    /* the epoch of the command that runs */
	int roots[2];        /* upper dirs: workspace, root */
	size_t have;
	uint8_t in[FRAME_MAX + 4];
};

static void drop_link(struct bulk *b)
{
	b->link->live = false;
	b->have = 0;
	b->epoch++;
}

static void take_bytes(struct bulk *b, const uint8_t *raw, size_t n)
{
	for (size_t at = 0; at < n;) {
		enum link_event event;
		bool was_live = b->link->live;
		size_t used = link_scan(b->link, raw + at, n - at, &event);
		if (event != LINK_NOTHING) {
			b->have = 0;
			b->epoch++;
		} else if (was_live && b->have + used <= sizeof b->in) {
			memcpy(b->in + b->have, raw + at, used);
			b->have += used;
		} else if (was_live) {
			drop_link(b); /* a host that asks faster than it reads */
		}
		at += used;
	}
}

/* Moves bytes both ways, waiting at most `wait` ms; false when the command's link is over. */
static bool pump(struct bulk *b, int wait)
{
	static uint8_t raw[CHUNK];
	struct link *l = b->link;
	struct pollfd p = {.fd = l->away ? -1 : l->port, .events = link_wants(l)};
	poll(&p, 1, l->away ? AWAY_MS : wait);
	ssize_t n = link_read(l, raw, sizeof raw);
	if (n < 0 && l->live)
		drop_link(b);
	if (n > 0)
		take_bytes(b, raw, (size_t)n);
	link_flush(l);
	return b->epoch == b->serving;
}

/* Queues one frame; false when the link ended meanwhile. */
bool bulk_send(struct bulk *b, uint8_t type, const void *head, size_t head_n, const void *body,
	       size_t body_n)
{
	uint8_t start[5];
	put_le(put_le(start, 1 + head_n + body_n, 4), type, 1);
	if (!pump(b, 0))
		return false;
	while (OUT_MAX - (b->link->out_end - b->link->out_at) < sizeof start + head_n + body_n)
		if (!pump(b, -1))
			return false;
	return link_put(b->link, start, sizeof start) && link_put(b->link, head, head_n) &&
	       link_put(b->link, body, body_n);
}

static bool done(struct bulk *b)
{
	return bulk_send(b, 'k', NULL, 0, NULL, 0);
}

static bool failed(struct bulk *b, uint32_t id, int code)
{
	uint8_t head[8];
	const char *text = strerror(code);
	put_le(put_le(head, id, 4), (uint64_t)code, 4);
	return bulk_send(b, 'x', head, sizeof head, text, strlen(text));
}

static bool list(struct bulk *b, const uint8_t *r, size_t n)
{
	if (n != 13 || r[0] > 1)
		return failed(b, 0, EINVAL);
	return bulk_list(b, b->roots[r[0]], (uint32_t)get_le(r + 1, 4), get_le(r + 5, 8));
}

static int open_beneath(int root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOATIME,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS |
			   RESOLVE_BENEATH,
	};
	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static uint64_t nanoseconds(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool send_file(struct bulk *b, uint32_t id, int fd, uint64_t max)
{
	static uint8_t body[CHUNK];
	uint8_t head[28];
	struct stat st;
	uint64_t total = 0;
	put_le(head, id, 4);
	for (ssize_t n; (n = read(fd, body, CHUNK - 4)) != 0; total += (uint64_t)n) {
		if (n < 0 || total + (uint64_t)n > max)
			return failed(b, id, n < 0 ? errno : EFBIG);
		if (!bulk_send(b, 'd', head, 4, body, (size_t)n))
			return false;
	}
	if (fstat(fd, &st))
		return failed(b, id, errno);
	uint8_t *at = put_le(head + 4, total, 8);
	put_le(put_le(at, nanoseconds(st.st_mtim), 8), nanoseconds(st.st_ctim), 8);
	return bulk_send(b, 'f', head, sizeof head, NULL, 0);
}

static bool get(struct bulk *b, const uint8_t *r, size_t n)
{
	char path[4096];
	struct stat st;
	if (n < 23)
		return failed(b, 0, EINVAL);
	uint32_t id = (uint32_t)get_le(r, 4);
	size_t length = (size_t)get_le(r + 21, 2);
	if (r[4] > 1 || length != n - 23 || length >= sizeof path || memchr(r + 23, 0, length))
		return failed(b, id, EINVAL);
	memcpy(path, r + 23, length);
	path[length] = 0;
	int fd = open_beneath(b->roots[r[4]], path);
	if (fd < 0)
		return failed(b, id, errno);
	int code = fstat(fd, &st)                     ? errno
		   : !S_ISREG(st.st_mode)             ? EINVAL
		   : st.st_ino != get_le(r + 5, 8)    ? ESTALE
		   : (uint64_t)st.st_size > get_le(r + 13, 8) ? EFBIG
							      : 0;
	bool alive = code ? failed(b, id, code) : send_file(b, id, fd, get_le(r + 13, 8));
	close(fd);
	return alive;
}

static bool is_frozen(void)
{
	char events[128];
	return read_text(CGROUP_AGENT "/cgroup.events", events, sizeof events) > 0 &&
	       strstr(events, "frozen 1");
}

static bool freeze(struct bulk *b, const uint8_t *r, size_t n)
{
	if (n != 1 || r[0] > 1)
		return failed(b, 0, EINVAL);
	if (!write_text(CGROUP_AGENT "/cgroup.freeze", r[0] ? "1" : "0"))
		return failed(b, 0, errno);
	int64_t end = now_ms() + FREEZE_MS;
	while (r[0] && !is_frozen()) {
		if (now_ms() > end)
			return failed(b, 0, ETIMEDOUT);
		nap_ms(2);
	}
	if (r[0] && syncfs(b->roots[0]))
		return failed(b, 0, errno);
	return done(b);
}

static bool set_clock(struct bulk *b, const uint8_t *r, size_t n)
{
	int64_t at = n == 8 ? (int64_t)get_le(r, 8) : -1;
	struct timespec t = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
	if (at < 0)
		return failed(b, 0, EINVAL);
	return clock_settime(CLOCK_REALTIME, &t) ? failed(b, 0, errno) : done(b);
}

static bool serve(struct bulk *b, uint8_t type, const uint8_t *r, size_t n)
{
	switch (type) {
	case 'L':
		return list(b, r, n);
	case 'G':
		return get(b, r, n);
	case 'F':
		return freeze(b, r, n);
	case 'T':
		return set_clock(b, r, n);
	case 'P':
		return done(b);
	}
	return failed(b, 0, ENOSYS);
}

/* Serves the first request if it is complete; one that cannot be right ends the link. */
static bool serve_next(struct bulk *b)
{
	uint8_t request[REQUEST_MAX];
	if (b->have < 4)
		return false;
	size_t n = (size_t)get_le(b->in, 4);
	if (n < 1 || n > sizeof request) {
		drop_link(b);
		return false;
	}
	if (b->have < 4 + n)
		return false;
	memcpy(request, b->in + 4, n);
	b->have -= 4 + n;
	memmove(b->in, b->in + 4 + n, b->have);
	b->serving = b->epoch;
	serve(b, request[0], request + 1, n - 1);
	return true;
}

_Noreturn void bulk_run(struct link *l)
{
	static struct bulk b;
	static const char *const uppers[] = {WORKSPACE_UPPER, ROOT_UPPER};
	b.link = l;
	for (int i = 0; i < 2; i++)
		if ((b.roots[i] = open(uppers[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
			fatal(uppers[i]);
	for (;;)
		if (!l->live || !serve_next(&b))
			pump(&b, -1);
}
