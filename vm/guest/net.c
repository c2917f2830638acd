/* The network card, if the session has one: its address, the way out, the name server, and whom
 * the world's programs believe. */
#include "guest.h"

#include <arpa/inet.h>
#include <net/route.h>
#include <sys/sendfile.h>

#define CARD "eth0"
#define CARD_MS 3000

static struct { char own[16], mask[16], gateway[16]; } net;

static struct sockaddr address(const char *dotted) {
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr plain;
    if (inet_pton(AF_INET, dotted, &in.sin_addr) != 1) fatal("/session/net");
    memcpy(&plain, &in, sizeof plain);
    return plain;
}

static void set(int fd, unsigned long what, const char *dotted) {
    struct ifreq r = {.ifr_name = CARD, .ifr_addr = address(dotted)};
    if (ioctl(fd, what, &r)) fatal(CARD);
}

/* The driver was loaded a moment ago. Its MTU is the card's own. */
static void raise_card(int fd) {
    struct ifreq r = {.ifr_name = CARD};
    for (int64_t end = now_ms() + CARD_MS; ioctl(fd, SIOCGIFFLAGS, &r); nap_ms(2))
        if (now_ms() > end) fatal(CARD);
    set(fd, SIOCSIFADDR, net.own);
    set(fd, SIOCSIFNETMASK, net.mask);
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(fd, SIOCSIFFLAGS, &r)) fatal(CARD);
}

#define V6_OWN "fd00:c10c:e::2"
#define V6_GATEWAY "fe80::1" /* vm/egress/ipv6.py */

/* The kernel asks nobody on the link for anything, and invents no address. */
static void calm_ipv6(const char *card) {
    static const char *const words[][2] = {{"accept_ra", "0"}, {"autoconf", "0"},
        {"accept_redirects", "0"}, {"dad_transmits", "0"}, {"accept_dad", "0"},
        {"router_solicitations", "0"}, {"addr_gen_mode", "1"}};
    char path[96];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/%s", card, words[i][0]);
        write_text(path, words[i][1]);
    }
}

/* All IPv6 is refused at the far end. An address and a way out are there for that alone: so whoever
 * tries it is told at once, and it stands in the log. A kernel without IPv6 has none of it. */
static void raise_ipv6(void) {
    struct { struct in6_addr own; uint32_t prefix; int card; } address = {.prefix = 128};
    struct in6_rtmsg route = {.rtmsg_flags = RTF_UP | RTF_GATEWAY, .rtmsg_metric = 1};
    struct ifreq r = {.ifr_name = CARD};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    inet_pton(AF_INET6, V6_OWN, &address.own);
    inet_pton(AF_INET6, V6_GATEWAY, &route.rtmsg_gateway);
    if (!ioctl(fd, SIOCGIFINDEX, &r)) address.card = route.rtmsg_ifindex = r.ifr_ifindex;
    if (!address.card || ioctl(fd, SIOCSIFADDR, &address) || ioctl(fd, SIOCADDRT, &route))
        fatal(CARD " ipv6");
    close(fd);
}

/* /session/net: `address mask gateway`. A session without it has no network. */
void raise_network(void) {
    char text[128];
    if (read_text("/session/net", text, sizeof text) < 1) return;
    errno = EINVAL;
    if (sscanf(text, "%15[0-9.] %15[0-9.] %15[0-9.]", net.own, net.mask, net.gateway) != 3)
        fatal("/session/net");
    calm_ipv6("default"); /* for a card that is not there yet */
    calm_ipv6(CARD);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fatal(CARD);
    raise_card(fd);
    struct rtentry route = {.rt_dst = address("0.0.0.0"), .rt_genmask = address("0.0.0.0"),
                            .rt_gateway = address(net.gateway), .rt_flags = RTF_UP | RTF_GATEWAY};
    if (ioctl(fd, SIOCADDRT, &route)) fatal("route");
    close(fd);
    raise_ipv6();
}

/* Called in the world's own root, so that no link of an image leads out of it. */
void name_server(void) {
    if (!*net.gateway) return;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : place_fresh(root, "etc", "resolv.conf");
    if (fd < 0 || dprintf(fd, "nameserver %s\n", net.gateway) < 0) fatal("/etc/resolv.conf");
    close(fd);
    close(root);
}

#define BUNDLE "ca-certificates.crt"

static int bundle = -1;
static bool fresh; /* nothing has changed the world's own bundle yet */

/* /session/ca.pem: the host's authorities. Called while toolkit and scratch disk are still seen. */
void take_authorities(void) {
    struct stat st;
    bundle = open("/session/ca.pem", O_RDONLY | O_CLOEXEC);
    unlink("/session/ca.pem");
    fresh = lstat(ROOT_UPPER "/etc/ssl/certs/" BUNDLE, &st) && errno == ENOENT;
}

/* Goes one folder down, through no link, and makes it where there is none. */
static int below(int folder, const char *name) {
    mkdirat(folder, name, 0755);
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(folder);
    return fd;
}

static bool put_bundle(int folder, const char *name) {
    struct stat st;
    off_t at = 0;
    unlinkat(folder, ".ca", 0);
    int fd = openat(folder, ".ca", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    bool all = fd >= 0 && !fchmod(fd, 0644) && !fstat(bundle, &st);
    while (all && at < st.st_size) all = sendfile(fd, bundle, &at, (size_t)(st.st_size - at)) > 0;
    if (fd >= 0) close(fd);
    all = all && !renameat(folder, ".ca", folder, name);
    if (!all) unlinkat(folder, ".ca", 0);
    close(folder);
    return all;
}

/* Called in the world's own root. What variables name lies in /run, the same in every image. Once
 * it also takes the place of the system's own, for programs that look nowhere else; an image that
 * has a link or a file on the way there keeps what it has. */
void give_authorities(void) {
    if (bundle < 0) return;
    if (!put_bundle(below(open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "cloche"), "ca.pem"))
        fatal("/run/cloche/ca.pem");
    int etc = fresh ? open("/etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (etc >= 0) put_bundle(below(below(etc, "ssl"), "certs"), BUNDLE);
    close(bundle);
}
