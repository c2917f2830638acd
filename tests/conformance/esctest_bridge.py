"""Runs a checkout of esctest2 against our engine, in this process and without a PTY.

    python -m tests.conformance.esctest_bridge PATH [--json] [--only REGEX] [--xterm PATCH]

PATH is the checkout (it is not part of this repository). Every test gets a fresh engine and at most
`LIMIT_S` seconds. A read with no answer waiting fails at once: the engine answers while it is fed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import json
import re
import signal
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conformance.embedder import Embedder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

LIMIT_S = 10.0
"""Seconds of wall time that one test may take."""

LEVEL = 4
"""The VT level that is tested; 5 adds what only the VT500's printers and status lines have."""

TUI = {
    "cursor": ("BS", "CHA", "CNL", "CPL", "CR", "CUB", "CUD", "CUF", "CUP", "CUU", "HPA", "HPR",
               "HVP", "VPA", "VPR"),
    "erase": ("ECH", "ED", "EL", "DECALN"),
    "insert/delete": ("DCH", "DL", "ICH", "IL"),
    "scroll": ("FF", "IND", "LF", "NEL", "RI", "SD", "SU", "VT"),
    "margins": ("DECSTBM",),
    "modes": ("DECSET", "DECSETTiteInhibit", "RM", "SM", "DECSTR", "RIS"),
    "save/restore": ("DECRC", "SCORC", "XtermSave"),
    "REP": ("REP",),
    "tabs": ("CBT", "CHT", "HTS", "TBC"),
}  # fmt: skip
"""Classes that programs drawing a screen lean on, by what they are about."""

WIDER = ("DECSED", "DECSEL", "DECDC", "DECIC", "DECBI", "DECFI")
"""VT320 and VT420 editing that could be counted too: given apart, so that nothing is hidden."""


class TimeUp(BaseException):
    """A test took too long; not an Exception, for the suite catches those."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test: `result` is pass, fail or skip."""

    family: str
    name: str
    result: str
    reason: str


class Suite:
    """The modules of a checkout, joined to an embedder instead of a terminal."""

    def __init__(self, checkout: Path, xterm: int = 0) -> None:
        """Load a checkout; `xterm` is the patch whose reverse wraparound is expected."""
        folder = checkout / "esctest"
        if not (folder / "escio.py").is_file():
            raise FileNotFoundError(f"{checkout} is no checkout of esctest2")
        with _foreign_tests(folder):
            # in this order: two of them import each other
            names = ("esc", "escargs", "esccmd", "escio", "esclog", "esctypes", "escutil", "tests")
            self._modules: dict[str, Any] = {name: importlib.import_module(name) for name in names}
            # it waits for a window manager, which is not there
            waits: Any = importlib.import_module("tests.xterm_winops")
            waits.time = types.SimpleNamespace(sleep=abs)
        self.classes: list[type[Any]] = self._modules["tests"].tests
        self._embedder = Embedder()
        self._join(xterm)

    def _join(self, xterm: int) -> None:
        it = self._modules
        options = [f"--max-vt-level={LEVEL}", f"--xterm-reverse-wrap={xterm}"]
        it["escargs"].args = it["escargs"].parser.parse_args(
            ["--expected-terminal=xterm", "--logfile=/dev/null", *options]
        )
        it["esc"].vtLevel = LEVEL
        it["esclog"].Log = _forget
        it["escio"].Write = self._write
        it["escio"].read = self._read

    def _write(self, text: str, sideChannelOk: bool = True) -> None:
        del sideChannelOk  # where a log of the test would go
        self._embedder.write(text.encode("latin-1"))

    def _read(self, count: int) -> str:
        waiting = self._embedder.replies
        if len(waiting) < count:
            raise self._modules["esctypes"].InternalError("no answer")
        taken = waiting[:count].decode("latin-1")
        del waiting[:count]
        return taken

    def tests(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        """Yield class, name and method of each test."""
        for kind in self.classes:
            family = kind.__name__.removesuffix("Tests")
            for name, method in inspect.getmembers(kind(), inspect.ismethod):
                if name.startswith("test_"):
                    yield family, name.removeprefix("test_"), method

    def run(self, family: str, name: str, method: Callable[[], None]) -> Outcome:
        """Run one test on a fresh engine."""
        self._embedder.close()
        self._embedder = Embedder()
        self._modules["escio"].use8BitControls = False
        self._modules["escutil"].gHaveAsserted = False
        result, reason = self._judge(method)
        return Outcome(family, name, result, reason)

    def _judge(self, method: Callable[[], None]) -> tuple[str, str]:
        told = self._modules["esctypes"]
        try:
            with _bounded(LIMIT_S):
                method()
                self._modules["escutil"].AssertAssertionAsserted()
        except (told.KnownBug, told.InsufficientVTLevel) as skipped:
            return "skip", _one_line(skipped)
        except TimeUp:
            return "fail", f"more than {LIMIT_S:.0f} s"
        except Exception as failed:  # whatever a foreign test raises is its verdict
            return "fail", _one_line(failed)
        return "pass", ""


@contextlib.contextmanager
def _foreign_tests(folder: Path) -> Generator[None]:
    """Let `tests` mean the suite's package while it is imported, and ours before and after."""
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_tests(name)}
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if _is_tests(name)]:
            del sys.modules[name]
        sys.modules.update(ours)


def _forget(level: int, text: str) -> None:
    """Keep no log."""


def _is_tests(name: str) -> bool:
    return name == "tests" or name.startswith("tests.")


@contextlib.contextmanager
def _bounded(seconds: float) -> Generator[None]:
    def stop(*_: object) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def share(outcomes: list[Outcome]) -> dict[str, float]:
    """Count outcomes; `percent` is of those that were not skipped."""
    passed, failed, skipped = (
        sum(it.result == wanted for it in outcomes) for wanted in ("pass", "fail", "skip")
    )
    percent = round(100 * passed / max(1, passed + failed), 1)
    return {"pass": passed, "fail": failed, "skip": skipped, "percent": percent}


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return the figures: all tests, those of `TUI`, and each group of them."""
    groups = {
        group: [it for it in outcomes if it.family in families] for group, families in TUI.items()
    }
    relevant = [it for members in groups.values() for it in members]
    return {
        "all": share(outcomes),
        "tui": share(relevant),
        "tui_and_wider": share([*relevant, *(it for it in outcomes if it.family in WIDER)]),
        "groups": {group: share(members) for group, members in groups.items()},
        "tui_failures": {
            f"{it.family}.{it.name}": it.reason for it in relevant if it.result == "fail"
        },
        "other_failures": {
            f"{it.family}.{it.name}": it.reason
            for it in outcomes
            if it.result == "fail" and it not in relevant
        },
    }


def main() -> int:
    """Run the suite; the exit status is 0 when every test could be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.esctest_bridge")
    parser.add_argument("checkout", type=Path, help="a checkout of esctest2")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--only", default="", help="run tests whose Class.name matches")
    parser.add_argument(
        "--xterm", type=int, default=0, metavar="PATCH", help="380 or more: today's wraparound"
    )
    asked = parser.parse_args()
    suite = Suite(asked.checkout, asked.xterm)
    wanted = re.compile(asked.only)
    chosen = [it for it in suite.tests() if wanted.search(f"{it[0]}.{it[1]}")]
    figures = summary([suite.run(*it) for it in chosen])
    sys.stdout.write(json.dumps(figures, indent=1) + "\n" if asked.json else _table(figures))
    return 0


def _table(figures: dict[str, Any]) -> str:
    shares = {
        "all": figures["all"],
        "TUI-relevant": figures["tui"],
        "with VT420": figures["tui_and_wider"],
        **figures["groups"],
    }
    lines = [
        f"{name:16}{it['pass']:5} of {it['pass'] + it['fail']:4}{it['percent']:7} %"
        for name, it in shares.items()
    ]
    failures = [f"  {name}: {reason}" for name, reason in figures["tui_failures"].items()]
    return "\n".join([*lines, "TUI-relevant failures:", *failures]) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
