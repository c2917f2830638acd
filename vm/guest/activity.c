/* What the agent is busy with: the processor time of its cgroup, and whether a program that it
 * started has its terminal. Whatever is read here may be gone the next moment. */
#include "guest.h"

#define WATCHERS 8 /* more than one only for a moment, while another agent is started */

struct process { int parent, group, session, terminal, foreground; };

static bool look_at(int pid, struct process *p) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (read_text(path, text, sizeof text) < 1) return false;
    char *name_end = strrchr(text, ')'); /* the name before it is the program's choice */
    return name_end && sscanf(name_end + 1, " %*c %d %d %d %d %d", &p->parent, &p->group,
                              &p->session, &p->terminal, &p->foreground) == 5;
}

static size_t members(const char *cgroup, int *pids, size_t room) {
    char path[128];
    size_t n = 0;
    snprintf(path, sizeof path, CGROUP "%s/cgroup.procs", cgroup);
    FILE *f = fopen(path, "re");
    while (f && n < room && fscanf(f, "%d", pids + n) == 1) n++;
    if (f) fclose(f);
    return n;
}

/* A program that reads keys one by one (an editor, a pager, another shell) waits for its user. */
static bool reads_lines(int number) {
    char path[64];
    struct termios t;
    snprintf(path, sizeof path, "/dev/pts/%d", (number & 0xff) | (number >> 12 & 0xfff00));
    int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    bool lines = fd >= 0 && !tcgetattr(fd, &t) && t.c_lflag & ICANON;
    if (fd >= 0) close(fd);
    return lines;
}

static bool is_agent(const struct process *p, const int *watchers, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p->parent == watchers[i]) return p->terminal && p->foreground > 0;
    return false;
}

/* Whether the agent gave its terminal to a program that it waits for. */
bool agent_waits(void) {
    static int pids[8192]; /* the cgroup's pids.max */
    int watchers[WATCHERS];
    struct process p;
    size_t known = members("keep", watchers, WATCHERS), n = members("agent", pids, LENGTH(pids));
    for (size_t i = 0; known && i < n; i++)
        if (look_at(pids[i], &p) && is_agent(&p, watchers, known))
            return p.foreground != p.group && reads_lines(p.terminal);
    return false;
}

/* Microseconds of processor time that the agent and all that it started have used. */
uint64_t agent_processor_time(void) {
    char text[1024];
    unsigned long long used = 0;
    if (read_text(CGROUP "agent/cpu.stat", text, sizeof text) < 1) return 0;
    return sscanf(text, "usage_usec %llu", &used) == 1 ? used : 0;
}
