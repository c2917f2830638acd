/* The agent's terminal: PID 1 keeps its master, and the last MiB that it printed.
 *
 * `/bin/hold` brings descriptors to a socket that only the toolkit's root can reach: the master of
 * a terminal whose program is about to start, or the two ends of a channel of sshd for the one host
 * that carries the terminal. Whoever attaches last has it; the one before is let go.
 *
 * Bytes are counted from the program's first one. The host says from which count on it wants them,
 * and acknowledges what it has recorded: while it is there nothing that it has not recorded is
 * overwritten, the program waits instead. Without a host the ring takes the newest and drops the
 * oldest. Nothing here ever waits; what cannot be done now is done in a later turn.
 *
 * Frames on the channel, both ways: u32 length | u8 type | payload (little endian; the length is
 * that of type and payload). To the host: B begins (u64 run, u64 count of the first byte that
 * follows, u32 bytes of input that wait for the program), O output, T input that the program's
 * terminal took (u32 more bytes), X the end (u32 status), after all output. From it: I input, W
 * size (u16 columns, u16 rows), A recorded (u64 count). */
#include "guest.h"

#define RING (1 << 20)
#define BEHIND (RING / 2) /* not yet recorded by the host: then the program waits */
#define PIECE (32 * 1024)
#define TYPED_MAX (64 * 1024) /* a host sends less than this ahead; one that sends more is let go */
#define HEAD 5
#define GULPS 8 /* reads of one turn: a terminal gives 4 KiB at most, and others wait */
#define REST_MS 4
#define ENOUGH (16 * 1024) /* so much at once is worth a turn of its own, however soon it comes */

static struct {
    int listener, visitor;
    int master;        /* -1 without a terminal */
    bool hung, gone;   /* nobody has its other end open; the program was reaped */
    int64_t rests;     /* until when what it prints may gather */
    pid_t pid;
    uint64_t run;      /* the name that the host gave it, 0: there was none yet */
    uint32_t status;
    uint64_t end, after; /* bytes printed; of them after the program's end */
    size_t typed_n;
} term = {.listener = -1, .visitor = -1, .master = -1};

static struct {
    int owner, in, out; /* `/bin/hold`, which goes with its link; the two ends of its channel */
    bool told_end;
    uint64_t sent, recorded;
    uint32_t taken; /* input that the host has not been told of */
    size_t have, out_at, out_end;
} host = {.owner = -1, .in = -1, .out = -1};

static uint8_t ring[RING], typed[TYPED_MAX]; /* what it printed; what it has not read yet */
static uint8_t frame[HEAD + PIECE], staged[HEAD + PIECE]; /* from the host, to the host */

static bool attached(void) { return host.owner >= 0; }

static void close_one(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void detach(void) {
    close_one(&host.owner);
    close_one(&host.in);
    close_one(&host.out);
}

/* A process that PID 1 forks and that lives on must not keep the terminal open. */
void terminal_forget(void) {
    detach();
    close_one(&term.listener);
    close_one(&term.visitor);
    close_one(&term.master);
}

void terminal_listen(const char *path) {
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    snprintf(place.sun_path, sizeof place.sun_path, "%s", path);
    term.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (term.listener < 0 || bind(term.listener, (struct sockaddr *)&place, sizeof place) ||
        chmod(path, 0600) || listen(term.listener, 8))
        fatal(path);
}

/* -- the program's side ------------------------------------------------------------------- */

static uint64_t oldest(void) { return term.end > RING ? term.end - RING : 0; }

/* How much may be read now: with a host, no more than the ring can keep until it has recorded it. */
static size_t room(void) {
    if (term.master < 0 || term.hung) return 0;
    uint64_t behind = attached() ? term.end - host.recorded : 0;
    return behind < BEHIND ? BEHIND - (size_t)behind : 0;
}

/* A terminal gives a line at a time, and each costs a switch to us, a frame and a packet. So after a
 * little was read, what follows has a moment to gather; the first after a silence, an echo, has not. */
static void rest(size_t taken) {
    if (taken) term.rests = taken < ENOUGH ? now_ms() + REST_MS : 0;
}

static void over(void) {
    close_one(&term.master);
    term.typed_n = 0;
}

/* Takes what was printed, at most GULPS times. When the program has been reaped, all that it wrote
 * is there to be read, so the first time that nothing is there the terminal is over; a child that
 * prints on is heard for another ring, no longer. */
static void from_program(void) {
    uint64_t before = term.end;
    for (int i = 0; i < GULPS || term.gone; i++) {
        size_t at = term.end % RING, n = room();
        ssize_t got = n ? read(term.master, ring + at, n < RING - at ? n : RING - at) : 0;
        if (n && got <= 0) {
            term.hung = got == 0 || errno == EIO;
            if (term.gone) over();
        }
        if (got <= 0) break;
        term.end += (uint64_t)got;
        if (term.gone && (term.after += (uint64_t)got) > RING) over();
    }
    rest((size_t)(term.end - before));
}

static void to_program(void) {
    if (term.master < 0 || !term.typed_n) return;
    ssize_t n = term.hung ? 0 : write(term.master, typed, term.typed_n);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    size_t done = n < 0 || term.hung ? term.typed_n : (size_t)n; /* nobody will read the rest */
    memmove(typed, typed + done, term.typed_n -= done);
    host.taken += (uint32_t)done;
}

void terminal_reaped(pid_t pid, int status) {
    if (pid != term.pid || term.gone || term.master < 0) return;
    term.status = (uint32_t)(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    term.gone = true;
    if (term.hung) over();
    else from_program();
}

/* -- the host's side ---------------------------------------------------------------------- */

static void resize(unsigned columns, unsigned rows) {
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    if (term.master >= 0 && columns && rows) ioctl(term.master, TIOCSWINSZ, &size);
}

static uint8_t *stage(char type, size_t n) {
    host.out_at = 0;
    host.out_end = HEAD + n;
    return put_le(put_le(staged, n + 1, 4), (uint8_t)type, 1);
}

static void stage_output(void) {
    size_t at = host.sent % RING, n = (size_t)(term.end - host.sent);
    if (n > PIECE) n = PIECE;
    if (n > RING - at) n = RING - at;
    memcpy(stage('O', n), ring + at, n);
    host.sent += n;
}

/* Prepares the next frame; false when there is nothing to say. */
static bool stage_next(void) {
    if (host.taken) {
        put_le(stage('T', 4), host.taken, 4);
        host.taken = 0;
    } else if (host.sent < term.end) {
        stage_output();
    } else if (term.master < 0 && !host.told_end) {
        put_le(stage('X', 4), term.status, 4);
        host.told_end = true;
    } else {
        return false;
    }
    return true;
}

static void to_host(void) {
    while (attached() && (host.out_at < host.out_end || stage_next())) {
        ssize_t n = write(host.out, staged + host.out_at, host.out_end - host.out_at);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) detach();
        else host.out_at += (size_t)n;
    }
}

static bool host_has_something(void) {
    return host.out_at < host.out_end || host.taken || host.sent < term.end ||
           (term.master < 0 && !host.told_end);
}

static bool take_input(const uint8_t *bytes, size_t n) {
    if (term.master < 0) return true; /* typed for a program that has ended */
    if (n > TYPED_MAX - term.typed_n) return false;
    memcpy(typed + term.typed_n, bytes, n);
    term.typed_n += n;
    to_program();
    return true;
}

static bool take_recorded(uint64_t count) {
    if (count < host.recorded || count > host.sent) return false;
    host.recorded = count;
    return true;
}

/* Does what one frame says; false when it cannot be right. */
static bool obey(uint8_t type, const uint8_t *payload, size_t n) {
    if (type == 'I') return take_input(payload, n);
    if (type == 'A') return n == 8 && take_recorded(get_le(payload, 8));
    if (type != 'W' || n != 4) return false;
    resize((unsigned)get_le(payload, 2), (unsigned)get_le(payload + 2, 2));
    return true;
}

static void from_host(void) {
    ssize_t got = read(host.in, frame + host.have, sizeof frame - host.have);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        detach();
        return;
    }
    host.have += (size_t)got;
    for (size_t n; host.have >= HEAD; host.have -= n) {
        n = 4 + (size_t)get_le(frame, 4);
        if (n < HEAD || n > sizeof frame) detach();
        if (!attached() || n > host.have) return;
        if (!obey(frame[4], frame + HEAD, n - HEAD)) detach();
        memmove(frame, frame + n, host.have - n);
    }
}

/* -- who comes to the socket -------------------------------------------------------------- */

struct visit { char what; uint64_t run, from; uint16_t columns, rows; pid_t pid; int fd[2]; };

/* A terminal begins with its program, unless there is one that has not ended. */
static int begin_run(const struct visit *v) {
    if (term.master >= 0) return EBUSY;
    detach();
    term.run = v->run;
    term.pid = v->pid;
    term.hung = term.gone = false;
    term.end = term.after = term.typed_n = term.status = 0;
    term.rests = 0;
    term.master = v->fd[0];
    return 0;
}

/* A host begins where it says, or at the oldest byte that is left. It may have more than there is:
 * a machine that was put back to an earlier moment printed less. */
static int begin_host(const struct visit *v) {
    if (!term.run || (v->run && v->run != term.run)) return ESRCH;
    detach();
    host.owner = term.visitor;
    term.visitor = -1;
    host.in = v->fd[0];
    host.out = v->fd[1];
    host.told_end = false;
    host.taken = 0;
    host.have = 0;
    host.sent = v->from < oldest() ? oldest() : v->from > term.end ? term.end : v->from;
    host.recorded = host.sent;
    put_le(put_le(put_le(stage('B', 20), term.run, 8), host.sent, 8), term.typed_n, 4);
    resize(v->columns, v->rows);
    return 0;
}

/* Reads what a visitor brought: how many descriptors, or -1 when it is none of /bin/hold's. */
static int read_visit(struct visit *v) {
    uint8_t raw[VISIT_LEN] = {0};
    union { struct cmsghdr align; char room[CMSG_SPACE(2 * sizeof(int))]; } extra;
    struct iovec body = {raw, sizeof raw};
    struct msghdr m = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = &extra,
                       .msg_controllen = sizeof extra};
    ssize_t n = recvmsg(term.visitor, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    int fds = 0;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        fds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    if (fds) memcpy(v->fd, CMSG_DATA(c), (size_t)fds * sizeof(int));
    v->what = (char)raw[0];
    v->run = get_le(raw + 1, 8);
    v->from = get_le(raw + 9, 8);
    v->columns = (uint16_t)get_le(raw + 17, 2);
    v->rows = (uint16_t)get_le(raw + 19, 2);
    v->pid = (pid_t)get_le(raw + 21, 4);
    if (n == VISIT_LEN && !(m.msg_flags & MSG_CTRUNC)) return fds;
    for (int i = 0; i < fds; i++) close(v->fd[i]);
    return -1;
}

static void hear_visitor(void) {
    struct visit v = {0};
    uint8_t code[4];
    int fds = read_visit(&v), error = EINVAL;
    for (int i = 0; i < fds; i++) fcntl(v.fd[i], F_SETFL, O_NONBLOCK);
    if (v.what == VISIT_START && fds == 1 && v.run) error = begin_run(&v);
    else if (v.what == VISIT_ATTACH && fds == 2) error = begin_host(&v);
    for (int i = 0; error && i < fds; i++) close(v.fd[i]);
    if (term.visitor < 0) return; /* it stays as the owner, and hears nothing more from us */
    put_le(code, (uint64_t)error, sizeof code);
    send(term.visitor, code, sizeof code, MSG_DONTWAIT | MSG_NOSIGNAL);
    close_one(&term.visitor);
}

static void let_in(void) {
    int fd = accept4(term.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    close_one(&term.visitor);
    term.visitor = fd;
}

/* -- turns -------------------------------------------------------------------------------- */

/* Says what to wait for, and for how many ms at most, -1 for ever. A descriptor that has nothing to
 * do is left out: its hang-up, which poll always reports, would wake us for ever. */
int terminal_wishes(struct pollfd *p) {
    int64_t left = room() ? term.rests - now_ms() : 0;
    bool reads = room() && left <= 0, writes = term.typed_n, says = host_has_something();
    p[0] = (struct pollfd){.fd = term.listener, .events = POLLIN};
    p[1] = (struct pollfd){.fd = term.visitor, .events = POLLIN};
    p[2] = (struct pollfd){.fd = reads || writes ? term.master : -1};
    p[2].events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    p[3] = (struct pollfd){.fd = host.in, .events = POLLIN};
    p[4] = (struct pollfd){.fd = says ? host.out : -1, .events = POLLOUT};
    p[5] = (struct pollfd){.fd = host.owner, .events = POLLIN};
    return left > 0 ? (int)left : -1;
}

void terminal_turn(const struct pollfd *p) {
    if (p[5].revents) detach(); /* its link ended, or the keeper let go */
    if (attached() && p[3].revents) from_host();
    if (p[2].revents & ~POLLOUT || term.gone) from_program();
    if (p[2].revents & ~POLLIN) to_program();
    if (p[1].revents) hear_visitor();
    if (p[0].revents) let_in();
    to_host();
}
