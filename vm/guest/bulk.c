/* The bulk port: what changed in the upper dirs, and contents, as plain frames.
 *
 * Runs in a process of its own. Every path that it opens is the agent's choice, so nothing follows
 * a link, leaves the upper dir or waits for a fifo. */
#include "guest.h"

#define IN_MAX (1024 * 1024) /* requests on their way; a host that queues more is cut off */
#define CHUNK (64 * 1024)
#define REQUEST_MAX (CHUNK + 64) /* a piece of a copy; the longest request that makes sense */
#define PATH_ROOM 4096
#define FREEZE_MS 5000
#define CLOCK_SLACK 200000000 /* nanoseconds that the clock may be off */
#define O_GET (O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOATIME)

/* from linux/openat2.h, which musl's headers do not carry */
struct open_how { uint64_t flags, mode, resolve; };
#define RESOLVE_NO_XDEV 0x01
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS 0x04
#define RESOLVE_BENEATH 0x08

struct bulk {
    struct link *link;
    unsigned epoch, serving; /* counts connections; the one whose command runs */
    int roots[2];            /* upper dirs: workspace, root */
    int copy;                /* socket of the copy that goes on, else -1 */
    pid_t copy_pid;
    unsigned copy_epoch;     /* a copy ends with its link */
    size_t have;
    uint8_t in[IN_MAX];
};

static void drop_link(struct bulk *b) {
    b->link->live = false;
    b->have = 0;
    b->epoch++;
}

static void take_bytes(struct bulk *b, const uint8_t *raw, size_t n) {
    for (size_t at = 0, used; at < n; at += used) {
        enum link_event event;
        bool was_live = b->link->live;
        used = link_scan(b->link, raw + at, n - at, &event);
        if (event != LINK_NOTHING) {
            b->have = 0;
            b->epoch++;
        } else if (was_live && used > IN_MAX - b->have) {
            drop_link(b);
        } else if (was_live) {
            memcpy(b->in + b->have, raw + at, used);
            b->have += used;
        }
    }
}

/* Moves bytes both ways, waiting at most `wait` ms, or until `fd` is ready for `events`; false when
 * the command's link is over. */
static bool pump_beside(struct bulk *b, int wait, int fd, short events) {
    static uint8_t raw[CHUNK];
    struct link *l = b->link;
    struct pollfd p[] = {{.fd = l->away ? -1 : l->port, .events = POLLIN},
                         {.fd = fd, .events = events}};
    if (l->out_at < l->out_end) p[0].events |= POLLOUT;
    poll(p, LENGTH(p), l->away ? AWAY_MS : wait);
    ssize_t n = link_read(l, raw, sizeof raw);
    if (n < 0 && l->live) drop_link(b);
    if (n > 0) take_bytes(b, raw, (size_t)n);
    link_flush(l);
    return b->epoch == b->serving;
}

static bool pump(struct bulk *b, int wait) { return pump_beside(b, wait, -1, 0); }

/* Queues one frame; false when the link ended meanwhile. */
bool bulk_send(struct bulk *b, char type, const void *head, size_t head_n, const void *body,
               size_t body_n) {
    uint8_t start[5];
    size_t whole = sizeof start + head_n + body_n;
    put_le(put_le(start, whole - 4, 4), (uint8_t)type, 1);
    const struct link *l = b->link;
    for (int wait = 0; !wait || OUT_MAX - (l->out_end - l->out_at) < whole; wait = -1)
        if (!pump(b, wait)) return false;
    return link_put(b->link, start, sizeof start) && link_put(b->link, head, head_n) &&
           link_put(b->link, body, body_n);
}

/* Ends a command: done for code 0, else its error. */
static bool answer(struct bulk *b, uint32_t id, int code) {
    uint8_t head[8];
    put_le(put_le(head, id, 4), (uint64_t)code, 4);
    return code ? bulk_send(b, 'x', head, sizeof head, strerror(code), strlen(strerror(code)))
                : bulk_send(b, 'k', "", 0, "", 0);
}

static bool list(struct bulk *b, const uint8_t *r, size_t n) {
    if (n != 13 || r[0] > 1) return answer(b, 0, EINVAL);
    return bulk_list(b, b->roots[r[0]], (uint32_t)get_le(r + 1, 4), get_le(r + 5, 8));
}

static bool send_file(struct bulk *b, uint32_t id, int fd, uint64_t max) {
    static uint8_t body[CHUNK];
    uint8_t head[28];
    struct stat st;
    uint64_t total = 0;
    put_le(head, id, 4);
    for (ssize_t n; (n = read(fd, body, CHUNK - 4)) != 0; total += (uint64_t)n) {
        if (n < 0 || total + (uint64_t)n > max) return answer(b, id, n < 0 ? errno : EFBIG);
        if (!bulk_send(b, 'd', head, 4, body, (size_t)n)) return false;
    }
    if (fstat(fd, &st)) return answer(b, id, errno);
    uint8_t *at = put_le(put_le(head + 4, total, 8), nanoseconds(st.st_mtim), 8);
    put_le(at, nanoseconds(st.st_ctim), 8);
    return bulk_send(b, 'f', head, sizeof head, "", 0);
}

static bool get(struct bulk *b, const uint8_t *r, size_t n) {
    struct open_how how = {.flags = O_GET, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS |
                                                      RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    char path[PATH_ROOM];
    struct stat st;
    uint32_t id = n < 23 ? 0 : (uint32_t)get_le(r, 4);
    if (n < 23 || n - 23 >= sizeof path || r[4] > 1 || get_le(r + 21, 2) != n - 23 ||
        memchr(r + 23, 0, n - 23))
        return answer(b, id, EINVAL);
    memcpy(path, r + 23, n - 23);
    path[n - 23] = 0;
    int fd = (int)syscall(SYS_openat2, b->roots[r[4]], path, &how, sizeof how);
    if (fd < 0 || fstat(fd, &st)) return answer(b, id, errno);
    int code = !S_ISREG(st.st_mode)                       ? EINVAL
               : st.st_ino != get_le(r + 5, 8)            ? ESTALE
               : (uint64_t)st.st_size > get_le(r + 13, 8) ? EFBIG
                                                          : 0;
    bool alive = code ? answer(b, id, code) : send_file(b, id, fd, get_le(r + 13, 8));
    close(fd);
    return alive;
}

static void copy_end(struct bulk *b) {
    if (b->copy < 0) return;
    close(b->copy);
    b->copy = -1;
    kill(b->copy_pid, SIGKILL);
    waitpid(b->copy_pid, NULL, 0);
}

static bool copy_open(struct bulk *b, const uint8_t *r, size_t n) {
    char path[PATH_ROOM];
    copy_end(b);
    if (n < 2 || n > sizeof path || r[0] > (COPY_ROOT | COPY_IN) || memchr(r + 1, 0, n - 1))
        return answer(b, 0, EINVAL);
    memcpy(path, r + 1, n - 1);
    path[n - 1] = 0;
    b->copy_epoch = b->epoch;
    b->copy = copy_start(path, r[0], &b->copy_pid);
    return answer(b, 0, b->copy < 0 ? errno : 0);
}

/* Sends what the copy says: some of `max` bytes, after at most `wait` ms; `q` when it has ended. */
static bool copy_read(struct bulk *b, const uint8_t *r, size_t n) {
    static uint8_t body[CHUNK];
    const uint8_t id[4] = {0};
    if (n != 8 || b->copy < 0) return answer(b, 0, n != 8 ? EINVAL : EBADF);
    uint64_t left = get_le(r, 4), wait = get_le(r + 4, 4);
    for (bool waited = false; left;) {
        size_t room = left < CHUNK - 4 ? left : CHUNK - 4;
        ssize_t got = recv(b->copy, body, room, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) {
            if (waited) break;
            waited = true;
            if (!pump_beside(b, (int)(wait < 1000 ? wait : 1000), b->copy, POLLIN)) return false;
            continue;
        }
        if (got <= 0) {
            copy_end(b);
            return bulk_send(b, 'q', "", 0, "", 0);
        }
        if (!bulk_send(b, 'd', id, sizeof id, body, (size_t)got)) return false;
        left -= (uint64_t)got;
    }
    return answer(b, 0, 0);
}

static bool copy_write(struct bulk *b, const uint8_t *r, size_t n) {
    if (b->copy < 0) return answer(b, 0, EBADF);
    for (size_t at = 0; at < n;) {
        ssize_t put = send(b->copy, r + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN) return answer(b, 0, EPIPE);
        if (put > 0) at += (size_t)put;
        else if (!pump_beside(b, -1, b->copy, POLLOUT)) return false;
    }
    return answer(b, 0, 0);
}

static bool is_frozen(void) {
    char events[128];
    return read_text(CGROUP "agent/cgroup.events", events, sizeof events) > 0 &&
           strstr(events, "frozen 1");
}

static bool freeze(struct bulk *b, const uint8_t *r, size_t n) {
    int64_t end = now_ms() + FREEZE_MS;
    if (n != 1 || r[0] > 1) return answer(b, 0, EINVAL);
    if (!write_text(CGROUP "agent/cgroup.freeze", r[0] ? "1" : "0")) return answer(b, 0, errno);
    for (; r[0] && !is_frozen(); nap_ms(2))
        if (now_ms() > end) return answer(b, 0, ETIMEDOUT);
    return answer(b, 0, r[0] && syncfs(b->roots[0]) ? errno : 0);
}

/* Sets the clock, unless it is right: a step back would disturb what runs. */
static bool set_clock(struct bulk *b, const uint8_t *r, size_t n) {
    uint64_t at = n == 8 ? get_le(r, 8) : UINT64_MAX;
    struct timespec t = {.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
    struct timespec now;
    if (at > INT64_MAX || clock_gettime(CLOCK_REALTIME, &now)) return answer(b, 0, EINVAL);
    int64_t off = (int64_t)(at - nanoseconds(now));
    bool right = -CLOCK_SLACK < off && off < CLOCK_SLACK;
    return answer(b, 0, !right && clock_settime(CLOCK_REALTIME, &t) ? errno : 0);
}

static bool activity(struct bulk *b, size_t n) {
    uint8_t body[9];
    if (n) return answer(b, 0, EINVAL);
    put_le(put_le(body, agent_waits(), 1), agent_processor_time(), 8);
    return bulk_send(b, 'a', body, sizeof body, "", 0);
}

static bool serve(struct bulk *b, uint8_t type, const uint8_t *r, size_t n) {
    switch (type) {
    case 'L': return list(b, r, n);
    case 'G': return get(b, r, n);
    case 'F': return freeze(b, r, n);
    case 'T': return set_clock(b, r, n);
    case 'A': return activity(b, n);
    case 'C': return copy_open(b, r, n);
    case 'R': return copy_read(b, r, n);
    case 'W': return copy_write(b, r, n);
    case 'Q': copy_end(b); return answer(b, 0, 0);
    case 'P': return answer(b, 0, 0);
    }
    return answer(b, 0, ENOSYS);
}

/* Serves the first request if it is complete; one that cannot be right ends the link. */
static bool serve_next(struct bulk *b) {
    static uint8_t request[REQUEST_MAX];
    size_t n = b->have < 4 ? 0 : (size_t)get_le(b->in, 4);
    if (b->have >= 4 && (n < 1 || n > sizeof request)) drop_link(b);
    if (b->have < 4 || b->have < 4 + n) return false;
    memcpy(request, b->in + 4, n);
    b->have -= 4 + n;
    memmove(b->in, b->in + 4 + n, b->have);
    b->serving = b->epoch;
    serve(b, request[0], request + 1, n - 1);
    return true;
}

_Noreturn void bulk_run(struct link *l) {
    static struct bulk b;
    static const char *const uppers[] = {WORKSPACE_UPPER, ROOT_UPPER};
    b.link = l;
    b.copy = -1;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < LENGTH(uppers); i++)
        if ((b.roots[i] = open(uppers[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
            fatal(uppers[i]);
    for (;;) {
        if (b.copy_epoch != b.epoch) copy_end(&b);
        if (!l->live || !serve_next(&b)) pump(&b, -1);
    }
}
