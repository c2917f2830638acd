"""A guest without a machine: a network namespace whose only interface is a tap, and its programs.

Run as a program within `unshare --net` it makes the tap, hands its descriptor to the test through
the socket on descriptor FD, and then does what it reads: one JSON array [operation, arguments] a
line, answered by one JSON value a line. So the Linux kernel's own TCP talks to the gateway.

With `-` in the place of FD there is a card already: it runs in a real machine.
"""

from __future__ import annotations

import array
import fcntl
import hashlib
import json
import os
import random
import selectors
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = b"eth0"
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
SIOCADDRT, SIOCSIFFLAGS, SIOCSIFADDR = 0x890B, 0x8914, 0x8916
SIOCSIFNETMASK, SIOCSIFMTU, SIOCSIFHWADDR = 0x891C, 0x8922, 0x8924
"""linux/sockios.h, linux/if_tun.h."""
WAIT_S = 60.0


def address(dotted: str) -> bytes:
    """A `struct sockaddr_in`."""
    return struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(dotted))


def make_tap(mac: str, own: str, gateway: str, mtu: int) -> int:
    """Make the interface, give it its address and the default route; return its descriptor."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", NAME, IFF_TAP | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for interface in (b"lo", NAME):
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", interface, 1))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", NAME, 0))
        raw = struct.pack("16sH6s16x", NAME, 1, bytes.fromhex(mac))
        fcntl.ioctl(control, SIOCSIFHWADDR, raw)
        fcntl.ioctl(control, SIOCSIFMTU, struct.pack("16si20x", NAME, mtu))
        fcntl.ioctl(control, SIOCSIFADDR, struct.pack("16s16s8x", NAME, address(own)))
        mask = struct.pack("16s16s8x", NAME, address("255.255.255.252"))
        fcntl.ioctl(control, SIOCSIFNETMASK, mask)
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", NAME, 1))
        add_route(control, gateway)
    ask_patiently()
    return tap


def ask_patiently() -> None:
    """Have the kernel ask for a hardware address for half a minute before it gives up.

    It asks three times, a second apart (Linux's ip-sysctl), which a busy test machine can miss.
    """
    for family in ("ipv4", "ipv6"):
        path = f"/proc/sys/net/{family}/neigh/{NAME.decode()}/mcast_solicit"
        if os.path.exists(path):  # a kernel may have no IPv6
            with open(path, "w", encoding="ascii") as file:
                file.write("30")


def add_ipv6() -> bool:
    """Give the interface what `vm/guest/net.c` gives it: an address and the way out.

    False where this kernel has no IPv6.
    """
    try:
        control = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    except OSError:
        return False
    card, here = socket.if_nametoindex(NAME.decode()), f"/proc/sys/net/ipv6/conf/{NAME.decode()}"
    with control:
        for name in ("accept_dad", "dad_transmits", "router_solicitations", "disable_ipv6"):
            with open(f"{here}/{name}", "w", encoding="ascii") as file:
                file.write("0")
        own, out = (socket.inet_pton(socket.AF_INET6, one) for one in ("fd00:c10c:e::2", "fe80::1"))
        fcntl.ioctl(control, SIOCSIFADDR, struct.pack("=16sIi", own, 128, card))
        route = struct.pack("@16s16s16sIHHILIi", b"", b"", out, 0, 0, 0, 1, 0, 3, card)
        fcntl.ioctl(control, SIOCADDRT, route)
    return True


def add_route(control: socket.socket, gateway: str) -> None:
    """Send everything to the gateway."""
    anywhere = address("0.0.0.0")
    route = struct.pack("=Q16s16s16sH", 0, anywhere, address(gateway), anywhere, 3)
    fcntl.ioctl(control, SIOCADDRT, route.ljust(120, b"\0"))


def hand_over(channel: socket.socket, descriptor: int) -> None:
    """Pass a descriptor to the test."""
    rights = array.array("i", [descriptor])
    channel.sendmsg([b"t"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def pattern(seed: int, size: int) -> bytes:
    """Bytes that are the same on both sides."""
    return random.Random(seed).randbytes(size)


def connect(host: str, port: int, timeout: float = WAIT_S) -> socket.socket:
    """A connection, made."""
    return socket.create_connection((host, port), timeout)


def receive_all(sock: socket.socket, size: int = 1 << 20) -> tuple[int, str]:
    """Read to the end; return how much it was, and its hash."""
    digest, count = hashlib.blake2b(), 0
    while piece := sock.recv(size):
        digest.update(piece)
        count += len(piece)
    return count, digest.hexdigest()


def download(host: str, port: int, ask: str = "", size: int = 1 << 20) -> list[Any]:
    """Ask for something and read to the end: [bytes, hash, seconds]."""
    began = time.monotonic()
    with connect(host, port) as sock:
        sock.sendall(ask.encode())
        count, digest = receive_all(sock, size)
    return [count, digest, time.monotonic() - began]


def upload(host: str, port: int, total: int, piece: int = 1 << 20, seed: int = 1) -> list[Any]:
    """Send so many bytes, end, and read the answer: [answer, hash of what was sent, seconds]."""
    began = time.monotonic()
    block = pattern(seed, piece)
    digest = hashlib.blake2b()
    with connect(host, port) as sock:
        left = total
        while left:
            part = block[: min(left, piece)]
            sock.sendall(part)
            digest.update(part)
            left -= len(part)
        sock.shutdown(socket.SHUT_WR)
        answer = sock.recv(4096)
    return [answer.decode(), digest.hexdigest(), time.monotonic() - began]


def echo_randomly(host: str, port: int, seed: int, total: int) -> bool:
    """Send pieces of random sizes and compare what comes back, both ways at once."""
    dice = random.Random(seed)
    data = dice.randbytes(total)
    with connect(host, port) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = bytearray()
        reader = threading.Thread(target=lambda: back.extend(_drain(sock)))
        reader.start()
        at = 0
        while at < total:
            size = dice.choice((1, 7, 500, 1460, 9000, 64_960, 64_961, 200_000))
            sock.sendall(data[at : at + size])
            at += size
        sock.shutdown(socket.SHUT_WR)
        reader.join(WAIT_S)
    return bytes(back) == data


def _drain(sock: socket.socket) -> bytes:
    pieces: list[bytes] = []
    while piece := sock.recv(70_000):
        pieces.append(piece)
    return b"".join(pieces)


def at_once(count: int, host: str, port: int, total: int) -> list[int]:
    """Open many connections, echo through all of them in threads: [right, wrong]."""
    results: list[bool] = []

    def one(seed: int) -> None:
        try:
            results.append(echo_randomly(host, port, seed, total))
        except OSError:
            results.append(False)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    return [sum(results), count - sum(results)]


def open_many(count: int, host: str, port: int, wait: float) -> dict[str, int]:
    """Begin many connections at once and hold them: how many came to what within the time."""
    selector = selectors.DefaultSelector()
    socks: list[socket.socket] = []
    for _ in range(count):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex((host, port))
        selector.register(sock, selectors.EVENT_WRITE)
        socks.append(sock)
    found = {"open": 0, "refused": 0, "other": 0}
    until = time.monotonic() + wait
    while sum(found.values()) < count and time.monotonic() < until:
        for key, _ in selector.select(0.5):
            sock = socks[0] if not isinstance(key.fileobj, socket.socket) else key.fileobj
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            found["open" if not error else "refused" if error == 111 else "other"] += 1
            selector.unregister(sock)
    found["pending"] = count - sum(found.values())
    for sock in socks:
        sock.close()
    return found


def one_by_one(count: int, host: str, port: int) -> list[Any]:
    """Connect, get one byte and close, again and again: [right, median seconds to connect]."""
    right = 0
    times: list[float] = []
    for _ in range(count):
        began = time.monotonic()
        with connect(host, port) as sock:
            times.append(time.monotonic() - began)
            sock.sendall(b"?")
            right += sock.recv(1) == b"?"
    return [right, sorted(times)[count // 2]]


def try_connect(host: str, port: int, say: str = "", timeout: float = 20.0) -> list[Any]:
    """Connect, say something, read: [what happened, seconds]."""
    began = time.monotonic()
    try:
        with connect(host, port, timeout) as sock:
            sock.sendall(say.encode("latin-1"))
            got = sock.recv(65_536)
            happened = got.decode("latin-1") if got else "end"
    except OSError as error:
        happened = type(error).__name__
    return [happened, time.monotonic() - began]


def half_close(host: str, port: int) -> str:
    """Hear the host's end first, then say something and end; return what it said."""
    with connect(host, port) as sock:
        first = _drain(sock)
        sock.sendall(b"still here")
        sock.shutdown(socket.SHUT_WR)
    return first.decode()


def reset(host: str, port: int) -> None:
    """Connect, exchange a byte, and end with a reset."""
    sock = connect(host, port)
    sock.sendall(b"?")
    sock.recv(1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def slow_reader(host: str, port: int, ask: str, pause: float, pieces: int) -> list[Any]:
    """Read with pauses and a small buffer, then to the end: [bytes, hash]."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        sock.settimeout(WAIT_S)
        sock.connect((host, port))
        sock.sendall(ask.encode())
        digest, count = hashlib.blake2b(), 0
        for _ in range(pieces):
            time.sleep(pause)  # that is the test: a window that stays closed for a while
            piece = sock.recv(20_000)
            digest.update(piece)
            count += len(piece)
        while piece := sock.recv(1 << 20):
            digest.update(piece)
            count += len(piece)
    return [count, digest.hexdigest()]


def stuff(host: str, port: int, wait: float) -> int:
    """Send to a host that never reads until nothing goes any more; return how much went."""
    with connect(host, port) as sock:
        sock.settimeout(wait)
        sent = 0
        try:
            while sent < 1 << 28:
                sent += sock.send(bytes(65_536))
        except TimeoutError:
            pass
    return sent


def udp(host: str, port: int, data: str, timeout: float = 20.0) -> list[Any]:
    """Send a datagram (hexadecimal) and wait: [the answer or the error, seconds]."""
    began = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout)
        try:
            sock.connect((host, port))
            sock.send(bytes.fromhex(data))
            happened = sock.recv(65_536).hex()
        except OSError as error:
            happened = type(error).__name__
    return [happened, time.monotonic() - began]


def raw_frames(frames: list[str], times: int = 1) -> int:
    """Send frames as they are (hexadecimal), past the kernel's own stack."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((NAME.decode(), 0))
        for frame in frames * times:
            sock.send(bytes.fromhex(frame))
    return len(frames) * times


def set_mac(mac: str) -> None:
    """Change the interface's hardware address, as a reset of the card could."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", NAME, 0))
        fcntl.ioctl(control, SIOCSIFHWADDR, struct.pack("16sH6s16x", NAME, 1, bytes.fromhex(mac)))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", NAME, 1))


def reset_card() -> None:
    """Take the interface down and up again, with its route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for flags in (0, 1):
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", NAME, flags))
        add_route(control, sys.argv[4])


def set_address(dotted: str, mask: str) -> None:
    """Change the interface's address, and go on using the gateway; it is up then."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", NAME, 1))
        fcntl.ioctl(control, SIOCSIFADDR, struct.pack("16s16s8x", NAME, address(dotted)))
        fcntl.ioctl(control, SIOCSIFNETMASK, struct.pack("16s16s8x", NAME, address(mask)))
        add_route(control, sys.argv[4])


def hold_open(host: str, port: int) -> str:
    """Exchange a byte again and again, until something happens; return what."""
    with connect(host, port) as sock:
        try:
            while True:
                sock.sendall(b"?")
                if not sock.recv(1):
                    return "end"
                time.sleep(0.05)  # a program that talks now and then
        except OSError as error:
            return type(error).__name__


def look_up(name: str, by_tcp: bool) -> list[Any]:
    """Ask the gateway for a name's address: [what it says, addresses]."""
    import dns.message
    import dns.query
    import dns.rcode

    query = dns.message.make_query(name, "A")
    ask = dns.query.tcp if by_tcp else dns.query.udp
    reply = ask(query, sys.argv[4], timeout=WAIT_S)
    found = [line.split()[-1] for line in reply.to_text().splitlines() if " IN A " in line]
    return [dns.rcode.to_text(reply.rcode()), found]


def swallow(host: str, port: int) -> float:
    """Read to the end without looking: seconds."""
    began = time.monotonic()
    place = bytearray(1 << 20)
    with connect(host, port) as sock:
        while sock.recv_into(place):
            pass
    return time.monotonic() - began


def pour(host: str, port: int, total: int) -> float:
    """Send so many bytes, end, and wait for a word: seconds."""
    began = time.monotonic()
    block = pattern(1, 1 << 20)
    with connect(host, port) as sock:
        for _ in range(total // len(block)):
            sock.sendall(block)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
    return time.monotonic() - began


KEPT: list[socket.socket] = []


def keep_open(count: int, host: str, port: int, size: int) -> int:
    """Open connections that echo so many bytes once, and keep them."""
    data = bytes(size)
    for _ in range(count):
        sock = connect(host, port)
        sock.sendall(data)
        left = size
        while left:
            left -= len(sock.recv(left))
        KEPT.append(sock)
    return len(KEPT)


def leave_unread(count: int, host: str, port: int) -> int:
    """Open connections that are kept and never read."""
    KEPT.extend(connect(host, port) for _ in range(count))
    return len(KEPT)


def let_go() -> None:
    """Close what was kept."""
    while KEPT:
        KEPT.pop().close()


OPERATIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(download, upload, echo_randomly, at_once, open_many, one_by_one, try_connect),
        *(half_close, reset, slow_reader, stuff, udp, raw_frames, set_mac),
        *(reset_card, hold_open, look_up, swallow, pour, keep_open, let_go),
        *(set_address, leave_unread, add_ipv6),
    )
}


def main(arguments: list[str]) -> None:
    """Make the tap, hand it over, and serve."""
    if arguments[0] != "-":
        channel = socket.socket(fileno=int(arguments[0]))
        mac, own, gateway, mtu = arguments[1:]
        tap = make_tap(mac, own, gateway, int(mtu))
        hand_over(channel, tap)
        os.close(tap)
    for line in sys.stdin:
        name, values = json.loads(line)
        try:
            answer = {"ok": OPERATIONS[name](*values)}
        except Exception as error:  # the test shall see whatever went wrong here
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
