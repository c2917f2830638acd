"""What passes from one side's headers to the other's. Pure.

The guest's head is looked at as bytes before `h11` reads it, for `h11` is lenient where two readers
may differ: folded lines, bare line feeds, two lengths.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Final

from vm.egress.broker.services import field_of
from vm.egress.kinds import Refused

if TYPE_CHECKING:
    from vm.egress.broker.scrub import Scrubber
    from vm.egress.broker.services import Held

    Headers = list[tuple[bytes, bytes]]

MAX_HEAD: Final = 65_536
MAX_HEADERS: Final = 128

HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade expect".split()
)
"""What is meant for the next one on the way only (RFC 9110, 7.6.1)."""
_AUTH: Final = frozenset((b"authorization", b"x-api-key", b"x-goog-api-key"))
_NOT_ASKED: Final = HOP | _AUTH | {b"host", b"accept-encoding", b"cookie", b"forwarded", b"via"}
_NOT_ANSWERED: Final = HOP | {b"set-cookie", b"alt-svc", b"content-encoding"}
_LINE: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*\Z")


def check_raw(head: bytes) -> None:
    """Refuse a head (up to its empty line) that two readers may read differently."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if len(lines) > MAX_HEADERS + 1:
        raise Refused("head-too-large")
    if not re.fullmatch(rb"[A-Z]+ [\x21-\x7e]+ HTTP/1\.[01]", lines[0]):
        raise Refused("not-http")
    names: list[bytes] = []
    for line in lines[1:]:
        if not _LINE.match(line):
            raise Refused("not-http")
        names.append(line.partition(b":")[0].lower())
    for name in (b"content-length", b"transfer-encoding", b"host"):
        if names.count(name) > 1:
            raise Refused("http-two-lengths" if name != b"host" else "host-mismatch")
    if b"content-length" in names and b"transfer-encoding" in names:
        raise Refused("http-two-lengths")


def check_request(held: Held, headers: Headers) -> None:
    """Refuse what asks for another host, for another protocol, or comes without placeholder."""
    host = held.service.internal.encode()
    if [value for name, value in headers if name == b"host"] not in ([host], [host + b":80"]):
        raise Refused("host-mismatch")
    if any(name == b"upgrade" for name, _ in headers):
        raise Refused("upgrade")
    _check_placeholder(held, headers)


def _check_placeholder(held: Held, headers: Headers) -> None:
    """Each header that can carry a key must carry the placeholder, and one of them has to."""
    service, value = held.service, held.placeholder.encode()
    good = [field_of(way, service.user, value) for way in service.accept]
    names = _AUTH | {name for name, _ in good}
    carried = [(name, value) for name, value in headers if name in names]
    if not carried:
        raise Refused("no-placeholder")
    if len({name for name, _ in carried}) != len(carried):
        raise Refused("foreign-credential")
    for name, value in carried:
        if not any(name == n and hmac.compare_digest(value, v) for n, v in good):
            raise Refused("foreign-credential")


def upstream(held: Held, headers: Headers) -> Headers:
    """Return what is sent on, with the credential: the only place where it is added."""
    service = held.service
    ways = {field_of(way, service.user, b"")[0] for way in (service.add, *service.accept)}
    kept = _kept(headers, _NOT_ASKED | ways)
    port = b"" if service.port == 443 else b":%d" % service.port
    if any(name == b"transfer-encoding" for name, _ in headers):
        kept.append((b"transfer-encoding", b"chunked"))
    return [
        (b"host", service.host.encode() + port),
        *kept,
        (b"accept-encoding", b"identity"),
        field_of(service.add, service.user, held.secret.reveal()),
        (b"connection", b"close"),
    ]


def answer(headers: Headers, scrubber: Scrubber) -> Headers:
    """Return what the guest gets of an answer's headers. Refused where it cannot be scrubbed."""
    for name, value in headers:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise Refused("encoded-answer")
    kept = _kept(headers, _NOT_ANSWERED)
    return [(scrubber.whole(name), scrubber.whole(value)) for name, value in kept]


def _kept(headers: Headers, without: frozenset[bytes]) -> Headers:
    named = {
        word.strip().lower()
        for name, value in headers
        if name == b"connection"
        for word in value.split(b",")
    } - {b"content-length", b"content-type"}
    return [(n, v) for n, v in headers if n not in without and n not in named]
