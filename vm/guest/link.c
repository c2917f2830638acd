/* The preamble of a link, looked for in every byte that comes from the host.
 *
 * Payload is never held back, not even when it looks like the beginning of a preamble: a packet may
 * end in such a byte, and its receiver would wait for it for ever. When a whole HELLO has been seen
 * the link is over anyway, so the part that was passed on harms nobody. */
#include "guest.h"

#define MARK '\x16'
#define MAGIC "\x16\x03" "CLOCHE "
#define MAGIC_LEN (sizeof MAGIC - 1)
#define VERB_LEN 6 /* "HELLO " or "START " */
#define PREFIX_LEN (MAGIC_LEN + HEX_LEN + 1)
#define LINE_LEN (PREFIX_LEN + VERB_LEN + HEX_LEN + 1)
#define GONE_MS 1000 /* a port may call its host absent for a moment while a new one speaks */

void link_init(struct link *l, int port, const char *token) {
    memset(l, 0, sizeof *l);
    l->port = port;
    memcpy(l->token, token, HEX_LEN);
}

bool link_put(struct link *l, const void *bytes, size_t n) {
    if (l->out_at && OUT_MAX - l->out_end < n) {
        memmove(l->out, l->out + l->out_at, l->out_end - l->out_at);
        l->out_end -= l->out_at;
        l->out_at = 0;
    }
    if (OUT_MAX - l->out_end < n) return false;
    memcpy(l->out + l->out_end, bytes, n);
    l->out_end += n;
    return true;
}

static void answer(struct link *l, const char *verb, const char *nonce) {
    char line[LINE_LEN + 1];
    link_put(l, line, (size_t)sprintf(line, MAGIC "%s %s %s\n", l->token, verb, nonce));
}

/* Takes one byte into the line, true when that completes it; one that does not fit may begin it. */
static bool line_takes(struct link *l, uint8_t byte) {
    size_t at = l->at;
    bool fits = at < MAGIC_LEN      ? byte == (uint8_t)MAGIC[at]
                : at < PREFIX_LEN - 1 ? byte == (uint8_t)l->token[at - MAGIC_LEN]
                : at == PREFIX_LEN - 1 ? byte == ' '
                : at < LINE_LEN - 1  ? isalnum(byte) || byte == ' '
                                     : byte == '\n';
    l->at = fits ? at + 1 : byte == MARK;
    l->line[fits ? at : 0] = (char)byte;
    return l->at == LINE_LEN;
}

static enum link_event line_done(struct link *l) {
    const char *verb = l->line + PREFIX_LEN;
    char nonce[HEX_LEN + 1] = {0};
    memcpy(nonce, verb + VERB_LEN, HEX_LEN);
    l->at = 0;
    if (strspn(nonce, "0123456789abcdef") != HEX_LEN) return LINK_NOTHING;
    if (!memcmp(verb, "HELLO ", VERB_LEN)) {
        l->live = false;
        l->out_at = l->out_end = 0;
        memcpy(l->ready, nonce, sizeof nonce);
        answer(l, "READY", nonce);
        return LINK_HELLO;
    }
    if (memcmp(verb, "START ", VERB_LEN) || l->live || strcmp(nonce, l->ready)) return LINK_NOTHING;
    l->ready[0] = 0;
    l->live = true;
    answer(l, "BEGIN", nonce);
    return LINK_BEGIN;
}

/* Says that the link's bytes end here: without it a host would wait for a dead sshd for ever. */
void link_ended(struct link *l) {
    char line[LINE_LEN + 1];
    link_put(l, line, (size_t)sprintf(line, MAGIC "%s ENDED\n", l->token));
}

/* Looks through bytes up to the end of the first preamble and says how many that were. */
size_t link_scan(struct link *l, const uint8_t *bytes, size_t n, enum link_event *event) {
    *event = LINK_NOTHING;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *mark = l->at ? bytes + i : memchr(bytes + i, MARK, n - i);
        if (!mark) break;
        i = (size_t)(mark - bytes);
        if (line_takes(l, bytes[i]) && (*event = line_done(l)) != LINK_NOTHING) return i + 1;
    }
    return n;
}

/* Reads what is there: 0 when nothing is, -1 when no host has been at the other end for a while. */
ssize_t link_read(struct link *l, uint8_t *bytes, size_t room) {
    ssize_t n = read(l->port, bytes, room);
    bool gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (gone && !l->away) l->away_since = now_ms();
    l->away = gone;
    return n > 0 ? n : gone && now_ms() - l->away_since > GONE_MS ? -1 : 0;
}

/* Writes what the port takes; an error means that no host is there, and a HELLO will follow. */
void link_flush(struct link *l) {
    for (ssize_t n; l->out_at < l->out_end; l->out_at += (size_t)n)
        if ((n = write(l->port, l->out + l->out_at, l->out_end - l->out_at)) <= 0) return;
    l->out_at = l->out_end = 0;
}
