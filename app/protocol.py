"""The values that cross `control.sock`: what the keeper answers and what clients send.

Every value is a frozen msgspec struct, so both ends check shapes and types on arrival. The same
structs are the bodies of the `--json` objects (see `docs/architecture.md`). Paths are text as
`app.wire_text` makes it (its inverse gives the exact bytes), shown only through the sanitiser.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from app.protocol_review import Resolve  # noqa: TC001 - msgspec reads the annotations
from vm.egress.broker.meter import CapAnswer  # noqa: TC001 - msgspec reads the annotation
from vm.egress.questions import (
    Answer,  # noqa: TC001 - msgspec reads the annotations
    Question,  # noqa: TC001 - msgspec reads the annotations
)

PROTOCOL = 1
"""Number of the protocol that `hello` agrees on."""

MAX_LINE = 1 << 20
"""Longest JSON-RPC line in bytes; longer ones end the connection."""

MAX_NAME = 60
"""Longest name of a session, in characters."""

SUBSYSTEM = "cloche.control"
"""Name of the SSH subsystem that speaks JSON-RPC 2.0, one object a line."""

SessionState = Literal["starting", "running", "paused", "stopping", "stopped", "failed", "lost"]
"""State of the machine and its session; `lost` = QEMU died without being told to."""

AgentState = Literal["starting", "working", "waiting", "idle", "done", "failed", "stalled"]
"""State of the agent inside a running session."""

Decision = Literal["open", "accepted", "rejected", "mixed"]
"""`mixed`: some lines of the hunk (or hunks of the file) are decided otherwise than the rest."""


class Counts(msgspec.Struct, frozen=True):
    """Size of a set of changes."""

    files: int = 0
    added: int = 0
    removed: int = 0


Network = Literal["on", "closed", "off"]
"""A card whose far end decides, a card whose far end refuses everything, or no card at all."""


class EgressInfo(msgspec.Struct, frozen=True):
    """How a session's network stands."""

    network: Network = "off"
    allowed: int = 0
    """Connections that were let through, in all of the session's life."""
    denied: int = 0
    """Connections and names that were refused."""


class Meter(msgspec.Struct, frozen=True):
    """What a session used of model services, by their answers, and where it stops to ask."""

    answers: int = 0
    tokens: int = 0
    usd: float = 0.0
    """At list prices; only what has one counts."""
    unpriced: int = 0
    """Tokens of models without a price."""
    silent: int = 0
    """Answers that did not say what they used; their tokens are estimated."""
    cap_tokens: int | None = None
    cap_usd: float | None = None
    asks: bool = False
    """Requests wait: a cap is reached."""
    waiting: int = 0
    """How many of them."""
    asked: float = 0.0
    """When the first of them came, in unix seconds; it names the question."""
    ends: float = 0.0
    """When the last of them is refused, unless somebody answers."""
    more_tokens: int | None = None
    more_usd: float | None = None
    """The caps that "as much again" would put in force."""
    changed: bool = False
    """The caps are others than those that the session began with."""
    stopped: bool = False
    """The user said: at the cap everything is refused, until the caps are others."""


class SessionInfo(msgspec.Struct, frozen=True):
    """One session as `ps` and the fleet screen show it."""

    id: str
    name: str
    agent: str
    state: SessionState
    workspace: str
    accelerator: str
    created: float
    changes: Counts = Counts()
    agent_state: AgentState = "starting"
    exit_code: int | None = None
    generation: int = 0
    message: str = ""
    """One sentence on why it failed or was lost, else empty."""
    hint: str = ""
    """The exact next step that goes with `message`."""
    notices: tuple[str, ...] = ()
    """Sentences about the snapshot (what was withheld) and the machine (why it is slow)."""
    open_units: int = 0
    """Hunks and aspects of the last generation that wait for a decision (partly decided ones
    too). What cannot be decided does not count."""
    since: float = 0.0
    """When `state` or `agent_state` last changed, in unix seconds; 0 before the first change."""
    jail: str = ""
    """`on` when QEMU was last started in its jail, `off` when without, empty before a start."""
    guest: str = "standard"
    """How much the guest's kernel refuses to the agent: `debug`, `standard` or `strict`."""
    waits: str = ""
    """What a session that is starting waits for (`memory`); `message` says how it looks."""
    sandbox: bool = False
    """A throw-away machine for one command: nothing to attach to, nothing to review."""
    egress: EgressInfo = EgressInfo()
    asks: tuple[Question, ...] = ()
    """What its held connections wait for, the first one asked in front; times in unix seconds."""
    meter: Meter = Meter()


class HunkInfo(msgspec.Struct, frozen=True):
    """One hunk: 1-based line numbers as in a unified diff without context.

    An aspect of the whole file is decided like a hunk and listed as one, with all numbers 0.
    """

    id: str
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    decision: Decision = "open"
    aspect: str = ""
    """Empty for lines; else creation, deletion, binary, link, type, mode or rename."""
    marks: str = ""
    """One letter a changed line: `o` open, `a` accepted, `r` rejected."""
    edited: bool = False
    """True when its result is the user's own text."""
    reason: str = ""
    """Why it was rejected, where the user said so."""
    rejected_before: bool = False
    """True when these changed lines were rejected earlier and came back."""
    merged: bool = False
    """True when a merge that was not taken back wrote what is accepted of it."""


class FileChange(msgspec.Struct, frozen=True):
    """One changed path, a rename named by its new one.

    `kind` is one of added, modified, deleted, renamed, mode, type; `mode`/`old_mode` are octal text
    such as "100755" (git's tree modes; "" where there is none). `base`/`agent` are the blake3 blob
    names of the contents (hex, "" where there is none); a link's content is its target.
    """

    path: str
    kind: Literal["added", "modified", "deleted", "renamed", "mode", "type"]
    old_path: str = ""
    mode: str = ""
    old_mode: str = ""
    added: int = 0
    removed: int = 0
    binary: bool = False
    risk: str = ""
    """Empty, or one phrase that says what the file can do by side effect."""
    tier: Literal["", "warned", "held"] = ""
    """Empty without a risk; `held` is left out of "accept safe", `warned` is accepted by it."""
    note: str = ""
    """Empty, or why the file is listed but cannot be merged (special, sparse, too large)."""
    base: str = ""
    agent: str = ""
    decision: Decision = "open"
    drift: bool = False
    """True when the user changed the real file: it is neither what the snapshot held nor what the
    last merge in force made of it."""
    hunks: tuple[HunkInfo, ...] = ()
    merged: bool = False
    """True when a merge that was not taken back wrote this path into the workspace."""
    comments: int = 0
    """How many comments there are on it, outdated ones too."""
    viewed: bool = False
    """True when the user marked the file as viewed and it is as it was then."""


class Changes(msgspec.Struct, frozen=True):
    """All changes of one generation of the mirror."""

    session: str
    generation: int
    files: tuple[FileChange, ...] = ()
    ignored: int = 0
    """How many changed paths the base snapshot's ignore rules hide."""
    last_merge: str = ""
    """The last merge that was not taken back, for `undo`; empty when there is none."""
    last_merge_files: int = 0
    """How many paths that merge wrote."""


class ChangesPage(msgspec.Struct, frozen=True):
    """As many files as fit into one line; the rest is asked for by `start`."""

    changes: Changes
    total: int
    """How many files this generation has."""


class ExecResult(msgspec.Struct, frozen=True):
    """How a command in the guest ended; the output is base64 in JSON."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    timed_out: bool = False


class Decide(msgspec.Struct, frozen=True):
    """One decision of the user, appended to the session's event log.

    Without `hunks` it is about the whole file (content, mode, rename, deletion). `lines` narrows a
    decision to single changed lines of one hunk by their index in it.
    """

    path: str
    decision: Literal["open", "accepted", "rejected"]
    hunks: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    reason: str = ""
    """Why it is rejected; the agent is told of it when changes are requested."""


class MergeRequest(msgspec.Struct, frozen=True):
    """What to merge: the decisions on record plus what the command line adds for this merge.

    `accept` and `reject` are literal paths first, gitignore-style patterns second. A pattern
    accepts what is open and not held by its risk; a path all of its file.
    """

    accept: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    hunks: tuple[str, ...] = ()
    accept_safe: bool = False
    dry_run: bool = False
    resolve: tuple[Resolve, ...] = ()
    """How conflicts of this merge are solved; recorded, like all of it, unless it is a dry run."""


class Skipped(msgspec.Struct, frozen=True):
    """A path that a merge left out, and why."""

    path: str
    reason: str


class MergeReport(msgspec.Struct, frozen=True):
    """What a merge did."""

    merge: str
    written: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    dry_run: bool = False
    notices: tuple[str, ...] = ()
    """Sentences about what was done, such as a step that had a weaker guarantee."""
    reasons: tuple[Skipped, ...] = ()
    """Why each of `conflicts` is one, in a phrase."""
    open: int = 0
    """Hunks and aspects that wait for a decision after this merge."""
    held: tuple[Skipped, ...] = ()
    """Paths that a pattern of `accept` met and left undecided, and the risk that is why."""
    kept: tuple[str, ...] = ()
    """Paths of which a pattern of `accept` left rejected what the user had rejected."""
    wrote: tuple[str, ...] = ()
    """The paths on disk that hold something new; `written` names changes."""
    deleted: tuple[str, ...] = ()
    """The paths on disk that are gone, the old one of a rename as well."""


class UndoReport(msgspec.Struct, frozen=True):
    """What taking back a merge did."""

    merge: str
    restored: tuple[str, ...] = ()
    """The changes that were taken back, by the names that the merge gave them."""
    conflicts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    """The paths on disk that hold again what they held before."""
    deleted: tuple[str, ...] = ()
    """The paths on disk that are gone, for the merge had made them."""


EventKind = Literal["session", "changes", "decisions", "merge"]


class Event(msgspec.Struct, frozen=True):
    """Something that happened, sent to every subscriber as a JSON-RPC notification.

    `kind`: `session` (info changed), `changes` (a new generation), `decisions`, `merge`.
    """

    kind: EventKind
    session: SessionInfo


class EgressAnswer(msgspec.Struct, frozen=True):
    """An answer to one of a session's open questions, which its host names."""

    host: str
    answer: Answer
    wide: bool = False
    """About all names beside the host, not about the host alone."""
    ports: tuple[int, ...] = ()
    """Those that were shown. An allow is about no other, whatever was asked since; empty: all."""


class EgressRule(msgspec.Struct, frozen=True):
    """What an answer put in force, as `allow pkgs.example:443 in this session`."""

    rule: str


class CapChange(msgspec.Struct, frozen=True):
    """Other caps on what a session uses: by an answer, or each as it is named."""

    answer: CapAnswer | None = None
    """None: by the numbers."""
    tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    usd: Annotated[float, msgspec.Meta(gt=0)] | None = None
    asked: float = 0.0
    """The question that is answered, as `Meter.asked` names it; 0: whatever is asked."""


class CapWord(msgspec.Struct, frozen=True):
    """What holds after a change of caps, in one line."""

    cap: str


class Forward(msgspec.Struct, frozen=True):
    """A port of this host's 127.0.0.1 that leads to one of the guest's."""

    host_port: int
    """0 in a request: any free one."""
    guest_port: int
    problem: str = ""
    """Why it is not listened on right now, else empty."""
