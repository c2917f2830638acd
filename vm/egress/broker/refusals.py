"""What the guest is told when the broker says no: for programs, and not to be tried again."""

from __future__ import annotations

import json
from typing import Final

_WORDS: Final = {
    "not-http": (400, "This is not plain HTTP/1.1 in one reading."),
    "head-too-large": (431, "The request's head is too large."),
    "http-two-lengths": (400, "The request says its length twice."),
    "host-mismatch": (421, "The request names another host than it was sent to."),
    "upgrade": (400, "The broker speaks HTTP/1.1 only; it changes to no other protocol."),
    "no-placeholder": (401, "The session's placeholder is missing in the request's headers."),
    "foreign-credential": (403, "The request carries another credential than the placeholder."),
    "credential-in-query": (400, "A key belongs into a header, never into the address."),
    "target-too-long": (414, "The request's target is too long."),
    "target-not-plain": (400, "The request's target can be read in more than one way."),
    "not-allowed": (403, "No rule of this service means this method and path."),
    "too-large": (413, "The request's body is larger than this service takes."),
    "encoded-answer": (502, "The service answered in a coding that cannot be searched."),
    "upstream-protocol": (502, "The service did not answer in HTTP/1.1."),
    "upstream-tls": (502, "The service's certificate is not trusted by this host."),
    "upstream-lost": (502, "The connection to the service broke."),
    "timeout": (504, "The service did not answer in time."),
    "guest-timeout": (408, "The request did not arrive in time."),
    "token-lock": (503, "Another program renews the service's login and does not end."),
    "token-file": (502, "The file of the service's login cannot be read or written."),
    "token-refused": (502, "The service's login is over; its user must log in again on the host."),
    "token-lost": (502, "Who renews the service's login cannot be reached."),
    "cap": (403, "The session's cap is reached, and nobody raised it."),
    "guest-gone": (408, "Who asked gave up while the session's cap was reached."),
    "git-path": (403, "This is no fetch of a repository in git's smart protocol."),
    "git-push": (403, "No rule names this repository and ref for a push."),
    "git-delete": (403, "A push may not delete a ref."),
    "git-push-options": (403, "A push with options is refused."),
    "git-command": (400, "The push has a command that is not understood."),
    "git-framing": (400, "The push is not framed as git does it."),
    "git-too-many-commands": (413, "The push changes too many refs at once."),
}


def sentence(code: str) -> str:
    """Return why, in words; empty for what is no refusal of the broker's own."""
    return _WORDS[code][1] if code in _WORDS else ""


def words(code: str, reason: str = "") -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of a refusal; `reason` for codes of the network."""
    status, text = _WORDS.get(code, (502, reason or "The service cannot be reached."))
    error = {"type": "cloche_broker", "code": code, "message": text, "retry": False}
    body = json.dumps({"error": error}).encode() + b"\n"
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"x-should-retry", b"false"),
        (b"connection", b"close"),
    ]
    return status, headers, body
