"""Whether the bytes of an approved connection go to the host that was approved.

A guest is told an address for each name, but nothing makes it speak of that name: one server
answers for many. So TLS must name the host in its ClientHello, and plain HTTP in every request.
Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from vm.egress.kinds import Refused
from vm.egress.names import BadName, canonical
from vm.egress.sniff_http import Requests
from vm.egress.sniff_tls import HelloReader, NotTls

if TYPE_CHECKING:
    from vm.egress.kinds import Request, Verdict

MAX_START: Final = 131_072
"""Bytes that may be needed to see a whole ClientHello: the longest, in many small records."""


class Inspector(Protocol):
    """Reads along, and holds back what is not yet known to be allowed."""

    @property
    def waiting(self) -> bool:
        """Whether nothing has passed yet."""
        ...

    @property
    def satisfied(self) -> bool:
        """Whether it has seen all that it wants to see of this connection."""
        ...

    @property
    def note(self) -> str:
        """What is worth a word in the log."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Take the guest's bytes; return those that may go on. Raises Refused."""
        ...

    def answered(self, data: bytes) -> bytes:
        """Hear the host's bytes; return the guest's that may go on now. Raises Refused."""
        ...


def inspector_for(request: Request, verdict: Verdict) -> Inspector | None:
    """Return what reads along on a connection that the verdict allows."""
    if verdict.inspect == "tls":
        return Tls(request.host, verdict.hidden)
    return Http(request.host, request.port) if verdict.inspect == "http" else None


class Tls:
    """Lets a connection go on once its ClientHello names the host."""

    def __init__(self, name: str, hidden_may_pass: bool) -> None:
        self.waiting = True
        self.satisfied = False
        self.note = ""
        self._name = name
        self._hidden_may_pass = hidden_may_pass
        self._reader = HelloReader()
        self._start = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Hold everything back until the ClientHello is whole."""
        if self.satisfied:
            return data
        self._start += data
        try:
            hello = self._reader.feed(data)
        except NotTls:
            raise Refused("not-tls") from None
        if hello is None:
            if len(self._start) > MAX_START:
                raise Refused("not-tls")
            return b""
        self._check(hello.name, hello.hidden)
        self.satisfied, self.waiting = True, False
        start, self._start = bytes(self._start), bytearray()
        return start

    def _check(self, name: bytes | None, hidden: bool) -> None:
        if name is None:
            raise Refused("no-sni")
        if not names_host(name, self._name):
            raise Refused("sni-mismatch")
        if hidden and not self._hidden_may_pass:
            raise Refused("hidden-sni")
        self.note = "the ClientHello may hide another name" if hidden else ""

    def answered(self, data: bytes) -> bytes:
        """Let the host speak; nothing waits for that."""
        return b""


class Http:
    """Lets requests go on that name the host."""

    def __init__(self, name: str, port: int | None) -> None:
        self.waiting = True
        self.note = ""
        self._name = name
        self._port = port
        self._requests = Requests(self._passes)

    @property
    def satisfied(self) -> bool:
        """Whether the connection speaks another protocol now."""
        return self._requests.raw

    def feed(self, data: bytes) -> bytes:
        """Hold a request back until its head is whole."""
        passed = self._requests.feed(data)
        self.waiting = self.waiting and not passed
        return passed

    def answered(self, data: bytes) -> bytes:
        """Hear whether the server agrees to another protocol."""
        return self._requests.answered(data)

    def _passes(self, host: bytes, port: int | None) -> bool:
        return names_host(host, self._name) and port in (None, self._port)


def names_host(raw: bytes, name: str) -> bool:
    """Tell whether bytes of the guest spell a canonical name."""
    try:
        return canonical(raw.decode("ascii")) == name
    except (BadName, UnicodeDecodeError):
        return False
