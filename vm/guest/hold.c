/* `/bin/hold`: starts a program on a terminal that PID 1 keeps, or carries that terminal.
 *
 * It hands descriptors to PID 1 and copies nothing. As the carrier it stays as long as PID 1 wants
 * it to: sshd ends the channel with it, and PID 1 lets the terminal go when it is gone. */
#include "guest.h"

#define TROUBLE 125
#define NO_SUCH_RUN 3 /* exit status of an attach to a run that PID 1 does not know */

static _Noreturn void trouble(const char *what) {
    fprintf(stderr, "hold: %s: %s\n", what, strerror(errno));
    _exit(TROUBLE);
}

static uint64_t number(const char *text, uint64_t most) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || value > most) errno = EINVAL;
    if (errno) trouble(text);
    return value;
}

/* Tells PID 1 what is wanted; the connection, on which it will answer. */
static int visit(char what, uint64_t run, uint64_t from, char **size, pid_t pid, const int *fd,
                 size_t fds) {
    uint8_t raw[VISIT_LEN];
    union { struct cmsghdr align; char room[CMSG_SPACE(2 * sizeof(int))]; } extra = {0};
    struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = TERMINAL_SOCKET};
    struct iovec body = {raw, sizeof raw};
    struct msghdr m = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = &extra,
                       .msg_controllen = CMSG_SPACE(fds * sizeof(int))};
    uint8_t *at = put_le(put_le(put_le(raw, (uint8_t)what, 1), run, 8), from, 8);
    at = put_le(put_le(at, number(size[0], 1000), 2), number(size[1], 1000), 2);
    put_le(at, (uint64_t)pid, 4);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds * sizeof(int));
    memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s < 0 || connect(s, (struct sockaddr *)&place, sizeof place) ||
        sendmsg(s, &m, MSG_NOSIGNAL) != (ssize_t)sizeof raw)
        trouble("terminal");
    return s;
}

/* Waits for PID 1's answer: 0, an error, or ENOTCONN when it hung up without one. */
static int answer(int s) {
    uint8_t code[4];
    ssize_t n;
    while ((n = recv(s, code, sizeof code, 0)) < 0 && errno == EINTR) continue;
    return n == sizeof code ? (int)get_le(code, 4) : ENOTCONN;
}

static int open_terminal(char **size) {
    struct winsize w = {.ws_col = (unsigned short)number(size[0], 1000),
                        .ws_row = (unsigned short)number(size[1], 1000)};
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || grantpt(fd) || unlockpt(fd) || ioctl(fd, TIOCSWINSZ, &w)) trouble("terminal");
    return fd;
}

/* The program's watcher: on the terminal, once PID 1 has it. */
static _Noreturn void watch(int master, int go, char **argv) {
    char byte, name[64];
    if (ptsname_r(master, name, sizeof name) || setsid() < 0) trouble("terminal");
    int end = open(name, O_RDWR);
    if (end < 0 || ioctl(end, TIOCSCTTY, 0)) trouble("terminal");
    if (read(go, &byte, 1) != 1) _exit(TROUBLE);
    for (int fd = 0; fd < 3; fd++) dup2(end, fd);
    syscall(SYS_close_range, 3, ~0u, 0);
    execv(ENTER, argv);
    trouble(ENTER);
}

/* start RUN COLUMNS ROWS ENTER-ARGUMENTS: PID 1 becomes the watcher's parent when we are gone. */
static int start(char **a) {
    int go[2], master;
    uint64_t run = number(a[0], UINT64_MAX);
    if (!join_cgroup("keep")) trouble("cgroup");
    master = open_terminal(a + 1);
    if (pipe2(go, O_CLOEXEC)) trouble("pipe");
    pid_t pid = fork();
    if (pid < 0) trouble("fork");
    if (!pid) {
        close(go[1]);
        a[2] = "enter";
        watch(master, go[0], a + 2);
    }
    if ((errno = answer(visit(VISIT_START, run, 0, a + 1, pid, &master, 1)))) trouble("terminal");
    return write(go[1], "", 1) == 1 ? 0 : TROUBLE;
}

/* attach RUN FROM COLUMNS ROWS: frames on standard input and output until somebody hangs up. */
static int attach(char **a) {
    static const int ends[] = {0, 1};
    uint64_t run = number(a[0], UINT64_MAX), from = number(a[1], UINT64_MAX);
    int code = answer(visit(VISIT_ATTACH, run, from, a + 2, 0, ends, 2));
    if (code == ENOTCONN) return 0;
    errno = code;
    if (code != ESRCH) trouble("terminal");
    return NO_SUCH_RUN;
}

int hold_main(int argc, char **argv) {
    if (argc > 5 && !strcmp(argv[1], "start")) return start(argv + 2);
    if (argc == 6 && !strcmp(argv[1], "attach")) return attach(argv + 2);
    errno = EINVAL;
    trouble("start RUN COLUMNS ROWS ENTER-ARGUMENTS | attach RUN FROM COLUMNS ROWS");
}
