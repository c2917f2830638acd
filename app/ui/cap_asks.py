"""What the strip says of a session whose cap is reached: pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.protocol import CapChange
from app.ui.egress_facts import tokens_words, usd_words
from snapshot.safe_text import safe_name
from widgets.question_strip import Answer, HeldQuestion

if TYPE_CHECKING:
    from app.protocol import Meter, SessionInfo

KEY: Final = "its cap"
"""Names the question beside those about hosts, of which none holds a space."""

WHY: Final = "its requests to models wait for your word"


@dataclass(frozen=True, slots=True)
class CapAsked:
    """A question about a cap and the session that waits for its answer."""

    session: str
    asked: float
    """When it was first asked: it names the question."""
    more: CapChange = field(compare=False)
    """What "as much again" meant when it was shown: use goes on meanwhile."""


def cap_question(info: SessionInfo) -> HeldQuestion | None:
    """Return what a session asks about its cap, None where it asks nothing."""
    meter = info.meter
    if not meter.asks:
        return None
    more = CapChange(tokens=meter.more_tokens, usd=meter.more_usd, asked=meter.asked)
    return HeldQuestion(
        key=f"{info.id} {KEY}",
        who=safe_name(f"{info.agent} ({info.name or info.id})").text,
        target=used_of(meter),
        reason=WHY,
        since=meter.asked,
        ends=meter.ends,
        waiting=meter.waiting,
        answers=_answers(meter),
        about=CapAsked(info.id, meter.asked, more),
        wish="used up its cap:",
        more=False,
    )


def change_by(about: CapAsked, key: str) -> CapChange:
    """Return what a key's answer asks of the keeper."""
    if key == "r":
        return about.more
    return CapChange(answer="lift" if key == "n" else "stop", asked=about.asked)


def used_of(meter: Meter) -> str:
    """Return what was used of each cap that is reached."""
    found: list[str] = []
    if meter.cap_usd is not None and meter.usd >= meter.cap_usd:
        found.append(f"{usd_words(meter.usd)} of {usd_words(meter.cap_usd)}")
    if meter.cap_tokens is not None and meter.tokens >= meter.cap_tokens:
        found.append(f"{meter.tokens:,} of {tokens_words(meter.cap_tokens)}")
    return ", ".join(found) or "reached"


def _answers(meter: Meter) -> tuple[Answer, ...]:
    named = [usd_words(meter.more_usd)] if meter.more_usd is not None else []
    named += [tokens_words(meter.more_tokens)] if meter.more_tokens is not None else []
    more = " and ".join(named)
    none = "no cap for this session: nothing asks again, whatever it uses"
    return (
        Answer("r", "r", f"raise to {more}", f"cap of {more}", False),
        Answer("n", "n", "no cap", none, True, "lift the cap"),
        Answer("k", "k", "keep stopped", "refuse what waits and what comes", False),
    )
