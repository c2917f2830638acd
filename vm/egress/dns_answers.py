"""The guest's only name server: it knows no addresses but its own, and asks nobody.

A name that may be talked to gets a synthetic address; one that may not does not exist. So no query
of a guest leaves the host, and nothing can be told to the world by asking for names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from vm.egress.kinds import Entry, Request
from vm.egress.names import BadName, from_labels, printable
from vm.egress.table import NameTable, TableFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.kinds import Judge, Log, Verdict

TTL: Final = 60
"""Seconds. The address stays the same; what may change is whether the name has one."""
HEADER: Final = 12
"""Bytes of a message's header (RFC 1035, 4.1.1)."""
MAX_QUERY: Final = 4096
"""A question has at most 12 + 255 + 4 bytes, and options."""
PAYLOAD: Final = 1232
"""What we say we take by UDP: the figure that DNS servers agreed on."""


class NoAnswer(Exception):
    """A message that gets no answer, since it is no question."""


@dataclass(slots=True)
class Responder:
    """Answers queries. `wall` gives Unix seconds for the log."""

    judge: Judge
    table: NameTable
    log: Log
    wall: Callable[[], float]

    def answer(self, message: bytes, now: float) -> bytes:
        """Return the answer to a message. Raises NoAnswer."""
        if not HEADER <= len(message) <= MAX_QUERY or message[2] & 0x80:
            raise NoAnswer
        try:
            query = dns.message.from_wire(message)
        except (dns.exception.DNSException, ValueError):
            return _malformed(message)
        return self._answer(query, now).to_wire()

    def _answer(self, query: dns.message.Message, now: float) -> dns.message.Message:
        reply = dns.message.make_response(query, recursion_available=True, our_payload=PAYLOAD)
        if query.opcode() != dns.opcode.QUERY:
            reply.set_rcode(dns.rcode.NOTIMP)
        elif len(query.question) != 1:
            reply.set_rcode(dns.rcode.FORMERR)
        elif query.question[0].rdclass != dns.rdataclass.IN:
            reply.set_rcode(dns.rcode.REFUSED)
        else:
            self._resolve(query.question[0], reply, now)
        return reply

    def _resolve(self, asked: dns.rrset.RRset, reply: dns.message.Message, now: float) -> None:
        qtype = dns.rdatatype.to_text(asked.rdtype)
        try:
            name = from_labels(asked.name.labels[:-1])
        except BadName as bad:
            reply.set_rcode(dns.rcode.NXDOMAIN)
            raw = printable(b".".join(asked.name.labels[:-1]))
            self._note(raw, qtype, None, bad.code, bad.reason)
            return
        verdict = self.judge.decide(Request(name))
        if verdict.action == "deny":
            reply.set_rcode(dns.rcode.NXDOMAIN)
            self._note(name, qtype, verdict, verdict.code, verdict.reason)
        else:
            self._give(asked, name, verdict, reply, now)

    def _give(
        self,
        asked: dns.rrset.RRset,
        name: str,
        verdict: Verdict,
        reply: dns.message.Message,
        now: float,
    ) -> None:
        """Answer with the name's address; other types than A have no data."""
        qtype = dns.rdatatype.to_text(asked.rdtype)
        if asked.rdtype == dns.rdatatype.A:
            try:
                address = self.table.bind(name, now)
            except TableFull as full:
                reply.set_rcode(dns.rcode.SERVFAIL)
                self._note(name, qtype, None, full.code, _FULL[full.code])
                return
            dotted = ".".join(map(str, address))
            rows = dns.rrset.from_text(asked.name, TTL, dns.rdataclass.IN, "A", dotted)
            reply.answer.append(rows)
        self._note(name, qtype, verdict, verdict.code, verdict.reason)

    def _note(self, name: str, qtype: str, verdict: Verdict | None, code: str, reason: str) -> None:
        entry = Entry(
            at=self.wall(),
            kind="query",
            host=name,
            port=None,
            verdict=verdict.action if verdict else "deny",
            level=verdict.level if verdict else "absolute",
            rule=verdict.rule if verdict else "",
            origin=verdict.origin if verdict else "",
            code=code,
            reason=reason,
            protocol="udp",
            qtype=qtype,
        )
        self.log(entry)


_FULL: Final = {
    "too-fast": "The guest asks for more than 50 new names a second.",
    "too-many-names": "The session has used up its 20,000 names.",
}


def _malformed(message: bytes) -> bytes:
    """Return "format error" for a message whose header alone is believed (RFC 1035, 4.1.1)."""
    flags = dns.flags.QR | (int.from_bytes(message[2:4], "big") & 0x7900) | dns.rcode.FORMERR
    return message[:2] + int(flags).to_bytes(2, "big") + bytes(8)
