/* What the parts of the guest's PID 1 share. The contract is in docs/architecture.md. */
#ifndef CLOCHE_GUEST_H
#define CLOCHE_GUEST_H
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LENGTH(table) (sizeof(table) / sizeof *(table))
#define AGENT_UID 1000
#define TTY_GID 5
#define HEX_LEN 32           /* token and nonces: lower-case hex digits */
#define OUT_MAX (192 * 1024) /* bytes on their way to the host, per link */
#define AWAY_MS 25           /* how often to look whether the host came back */
#ifndef CGROUP /* the tests run relay and bulk on the host, with folders of their own */
#define CGROUP "/sys/fs/cgroup/"
#define WORKSPACE_UPPER "/scratch/ws/upper"
#define ROOT_UPPER "/scratch/root/upper"
#define SSHD "/usr/sbin/sshd"
#define ENTER "/bin/enter"
#define WORLD "/world"
#define WORKSPACE "/workspace" /* in the world; where relative paths of copies begin */
#define TERMINAL_SOCKET "/run/hold.sock" /* in the toolkit root, out of the world's reach */
#endif
#define HOLDER_FILE "/run/holder" /* pid of the world's first process */

/* util.c */
_Noreturn void fatal(const char *what);
_Noreturn void machine_off(void);
bool write_text(const char *path, const char *text);
ssize_t read_text(const char *path, char *text, size_t room);
bool sys_find(const char *dir, const char *file, const char *wanted, char *name, size_t room);
int64_t now_ms(void);
void nap_ms(long ms);
bool join_cgroup(const char *name);
uint8_t *put_le(uint8_t *to, uint64_t value, size_t bytes);
uint64_t get_le(const uint8_t *from, size_t bytes);
uint64_t nanoseconds(struct timespec t);

/* link.c: one virtio port whose connections begin with a preamble */
enum link_event { LINK_NOTHING, LINK_HELLO, LINK_BEGIN };
struct link {
    int port;
    char token[HEX_LEN + 1];
    char line[96]; /* the preamble line that is being matched, and how much of it is there */
    size_t at;
    char ready[HEX_LEN + 1]; /* the nonce of the last READY, empty once it has begun */
    bool live;               /* between BEGIN and whatever ends the link */
    bool away;               /* no host at the other end when last looked at */
    int64_t away_since;
    size_t out_at, out_end;
    uint8_t out[OUT_MAX];
};
void link_init(struct link *l, int port, const char *token);
void link_ended(struct link *l);
size_t link_scan(struct link *l, const uint8_t *bytes, size_t n, enum link_event *event);
ssize_t link_read(struct link *l, uint8_t *bytes, size_t room);
bool link_put(struct link *l, const void *bytes, size_t n);
void link_flush(struct link *l);

/* activity.c */
bool agent_waits(void);
uint64_t agent_processor_time(void);

/* place.c */
int place(int root, const char *path, bool folder);
int place_fresh(int root, const char *folder, const char *name);

/* terminal.c: the agent's terminal, and what /bin/hold says to it:
 * u8 what | u64 run | u64 from | u16 columns | u16 rows | u32 pid */
enum { VISIT_START = 'S', VISIT_ATTACH = 'A', VISIT_LEN = 25, TERMINAL_FDS = 6 };
void terminal_listen(const char *path);
void terminal_forget(void);
void terminal_reaped(pid_t pid, int status);
int terminal_wishes(struct pollfd *p);
void terminal_turn(const struct pollfd *p);

/* net.c */
void raise_network(void);
void name_server(void);
void take_authorities(void);
void give_authorities(void);

/* harden.c */
extern bool strict;
void harden(const char *profile);
void seal_modules(void);
bool is_strict(void);
bool refuse_calls(void);

/* world.c, relay.c, bulk.c, list.c, copy.c, enter.c, hold.c */
void load_modules(void);
void mount_own(void);
void mount_disks(void);
pid_t start_world(void);
void start_sshd(void);
_Noreturn void relay_run(struct link *control, struct link *bulk, pid_t holder);
struct bulk;
_Noreturn void bulk_run(struct link *l);
bool bulk_send(struct bulk *b, char type, const void *head, size_t head_n, const void *body,
               size_t body_n);
bool bulk_list(struct bulk *b, int root, uint32_t max_entries, uint64_t max_bytes);
enum copy_flags { COPY_ROOT = 1, COPY_IN = 2 };
int copy_start(const char *path, unsigned flags, pid_t *pid);
void become(bool root);
int enter_main(char **argv);
int hold_main(int argc, char **argv);
#endif
