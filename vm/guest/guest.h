/* What the parts of the guest's PID 1 share. The contract is in docs/architecture.md. */
#ifndef CLOCHE_GUEST_H
#define CLOCHE_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AGENT_UID 1000
#define TTY_GID 5
#define HEX_LEN 32                    /* token and nonces: lower-case hex digits */
#define OUT_MAX (192 * 1024)          /* bytes on their way to the host, per link */
#define AWAY_MS 25                    /* how often to look whether the host came back */

#define CGROUP_AGENT "/sys/fs/cgroup/agent" /* the agent: what freeze freezes */
#define CGROUP_KEEP "/sys/fs/cgroup/keep"   /* dtach and watchers: outlive every link */
#define CGROUP_LINK "/sys/fs/cgroup/link"   /* sshd and what it started: ends with its link */
#define WORKSPACE_UPPER "/scratch/ws/upper"
#define ROOT_UPPER "/scratch/root/upper"
#define HOLDER_FILE "/run/holder" /* pid of the world's first process */

/* util.c */
_Noreturn void fatal(const char *what);
_Noreturn void machine_off(void);
bool write_text(const char *path, const char *text);
ssize_t read_text(const char *path, char *text, size_t room);
int64_t now_ms(void);
void nap_ms(long ms);
int move_to_cgroup(const char *cgroup);

/* link.c: one virtio port whose connections begin with a preamble */
enum link_event { LINK_NOTHING, LINK_HELLO, LINK_BEGIN };

struct link {
	int port;
	char token[HEX_LEN + 1];
	char line[96];             /* the preamble line that is being matched */
	size_t at;                 /* how much of it is there */
	char ready[HEX_LEN + 1];   /* the nonce of the last READY, empty once it has begun */
	bool live;                 /* between BEGIN and whatever ends the link */
	bool away;                 /* no host at the other end when last looked at */
	uint8_t out[OUT_MAX];
	size_t out_at, out_end;
};

void link_init(struct link *l, int port, const char *token);
size_t link_scan(struct link *l, const uint8_t *bytes, size_t n, enum link_event *event);
ssize_t link_read(struct link *l, uint8_t *bytes, size_t room);
bool link_put(struct link *l, const void *bytes, size_t n);
void link_flush(struct link *l);
short link_wants(const struct link *l);

/* world.c, relay.c, bulk.c, list.c, enter.c */
void mount_or_die(const char *from, const char *to, const char *type, unsigned long flags,
		  const char *options);
void load_modules(void);
void mount_disks(void);
pid_t start_world(const char *hostname);
_Noreturn void relay_run(struct link *control, struct link *bulk, pid_t holder);
void relay_start_sshd(void);
_Noreturn void bulk_run(struct link *l);
int enter_main(int argc, char **argv);
int dtach_main(int argc, char **argv);

/* frames.c: little-endian fields, and the bulk link as seen by its commands */
struct bulk;
bool bulk_send(struct bulk *b, uint8_t type, const void *head, size_t head_n, const void *body,
	       size_t body_n);
bool bulk_list(struct bulk *b, int root, uint32_t max_entries, uint64_t max_bytes);
uint8_t *put_le(uint8_t *to, uint64_t value, size_t bytes);
uint64_t get_le(const uint8_t *from, size_t bytes);

#endif
