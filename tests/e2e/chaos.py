"""`kill -9` at every named step of start, run, stop, resume and remove.

`python -m tests.e2e.chaos --all` goes through every step with every victim (an hour or so under
emulation), `--step NAME` through one; the test suite goes through every step with one victim each.
A chain is a row of deaths in the life of one session; after each one `ps` must be true and the
workspace as it was, and at the end `resume` must work and `rm` must leave nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e import vmlab
from tests.e2e.chaos_gate import Gate
from tests.e2e.chaos_world import OVER, Chaos
from tests.e2e.sessions import store_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vm.image.store import ImageSet

RUN: Final = ("run", "shell", "--detach", "--workspace", "WORKSPACE")
WRITE: Final = ("exec", "ID", "--", "sh", "-c", "date +%N > new.txt; mkdir -p d; echo x > d/x")
STOP: Final = ("stop", "ID")
RESUME: Final = ("resume", "ID")
READ: Final = ("resume", "ID", "--no-agent")
LOOK: Final = ("changes", "ID")
RM: Final = ("rm", "--force", "ID")
AS_IS: Final = ""
"""The state in which the death before left the session."""


@dataclass(frozen=True)
class Step:
    """One named step: the command that leads there, from which state, and who can die there."""

    name: str
    action: tuple[str, ...]
    machine: bool = True
    """Whether there is a machine at this step."""
    command: bool = False
    """Whether it is the user's command that stands there, not the keeper."""
    begin: str = "running"
    """State before: `none`, `running`, `stopped`, `orphaned` (machine without keeper), `lost`."""

    @property
    def victims(self) -> tuple[str, ...]:
        """Who can be killed here."""
        own = "command" if self.command else "keeper"
        return (own, "machine", "both") if self.machine else (own,)


STEPS: Final = (
    Step("run.folder", RUN, machine=False, command=True, begin="none"),
    Step("run.written", RUN, machine=False, command=True, begin="none"),
    Step("run.placed", RUN, machine=False, command=True, begin="none"),
    Step("run.spawned", RUN, machine=False, command=True, begin="none"),
    Step("keeper.up", RUN, machine=False, begin="none"),
    Step("start.begun", RUN, machine=False, begin="none"),
    Step("start.snapshot", RUN, machine=False, begin="none"),
    Step("start.disk", RUN, machine=False, begin="none"),
    Step("start.prepared", RUN, machine=False, begin="none"),
    Step("boot.machinery", RUN, machine=False, begin="none"),
    Step("boot.jailed", RUN, begin="none"),
    Step("boot.spawned", RUN, begin="none"),
    Step("boot.answers", RUN, begin="none"),
    Step("boot.noted", RUN, begin="none"),
    Step("boot.guest", RUN, begin="none"),
    Step("boot.agent", RUN, begin="none"),
    Step("boot.running", RUN, begin="none"),
    Step("start.begun", RESUME, machine=False, begin="stopped"),
    Step("boot.machinery", RESUME, machine=False, begin="stopped"),
    Step("boot.spawned", RESUME, begin="stopped"),
    Step("boot.noted", RESUME, begin="lost"),
    Step("boot.guest", RESUME, begin="stopped"),
    Step("boot.agent", RESUME, begin="lost"),
    Step("boot.running", RESUME, begin="stopped"),
    Step("read.running", READ, begin="lost"),
    Step("read.taken", READ, begin="lost"),
    Step("read.ended", READ, machine=False, begin="lost"),
    Step("adopt.found", LOOK, begin="orphaned"),
    Step("adopt.taken", LOOK, begin="orphaned"),
    Step("pass.begun", WRITE),
    Step("pass.fetched", WRITE),
    Step("pass.taken", WRITE),
    Step("pass.told", WRITE),
    Step("stop.begun", STOP),
    Step("stop.mirrored", STOP),
    Step("stop.ended", STOP, machine=False),
    Step("stop.written", STOP, machine=False),
    Step("stop.begun", RM),
    Step("stop.mirrored", RM),
    Step("stop.ended", RM, machine=False),
    Step("keeper.leaves", RM, machine=False),
    Step("remove.locked", RM, machine=False, command=True),
    Step("remove.renamed", RM, machine=False, command=True),
    Step("remove.sockets", RM, machine=False, command=True),
)


@dataclass(frozen=True)
class Death:
    """Somebody's end at one step of one command."""

    step: Step
    victim: str

    def __str__(self) -> str:
        return f"{self.step.action[0]}:{self.step.name}:{self.victim}"


def _chain(*rows: tuple[str, tuple[str, ...], str, str]) -> tuple[Death, ...]:
    """Return deaths from rows of step, command, victim and the state to begin with."""
    return tuple(
        Death(Step(name, action, command=victim == "command", begin=begin), victim)
        for name, action, victim, begin in rows
    )


CHAINS: Final = (
    _chain(
        ("run.folder", RUN, "command", AS_IS),
        ("run.written", RUN, "command", AS_IS),
        ("run.placed", RUN, "command", AS_IS),
        ("start.begun", RESUME, "keeper", AS_IS),
        ("start.snapshot", RESUME, "keeper", AS_IS),
        ("start.disk", RESUME, "keeper", AS_IS),
        ("start.prepared", RESUME, "keeper", AS_IS),
        ("boot.machinery", RESUME, "keeper", AS_IS),
        ("boot.jailed", RESUME, "machine", AS_IS),
        ("boot.spawned", RESUME, "both", AS_IS),
        ("boot.answers", RESUME, "machine", AS_IS),
        ("boot.noted", RESUME, "both", AS_IS),
        ("boot.guest", RESUME, "machine", AS_IS),
        ("boot.agent", RESUME, "keeper", AS_IS),
        ("adopt.found", LOOK, "keeper", "orphaned"),
        ("adopt.taken", LOOK, "keeper", "orphaned"),
        ("pass.begun", WRITE, "keeper", AS_IS),
        ("pass.fetched", WRITE, "keeper", AS_IS),
        ("pass.taken", WRITE, "keeper", AS_IS),
        ("pass.told", WRITE, "machine", AS_IS),
        ("read.running", READ, "both", AS_IS),
        ("read.taken", READ, "keeper", AS_IS),
        ("boot.running", RESUME, "keeper", AS_IS),
        ("stop.begun", STOP, "keeper", AS_IS),
        ("stop.mirrored", LOOK, "both", AS_IS),
        ("read.ended", READ, "keeper", AS_IS),
        ("stop.ended", STOP, "keeper", "running"),
        ("remove.locked", RM, "command", AS_IS),
        ("remove.renamed", RM, "command", AS_IS),
    ),
    _chain(
        ("run.spawned", RUN, "command", AS_IS),
        ("stop.written", STOP, "keeper", "running"),
        ("keeper.up", LOOK, "keeper", AS_IS),
        ("keeper.leaves", RM, "keeper", AS_IS),
        ("run.placed", RUN, "command", AS_IS),
        ("remove.sockets", RM, "command", AS_IS),
    ),
)
"""Every step with one victim, in as few boots as it takes: the next command is the resume."""


def bring_to(chaos: Chaos, state: str) -> None:
    """Bring the session to the state in which an action begins."""
    if state == AS_IS:
        return
    if state == "none":
        assert not chaos.session
        return
    if not chaos.session:
        begun = chaos.world.json(*words(chaos, RUN))
        chaos.session = begun["session"]
        chaos.world.wait_for(chaos.session, "state", "running")
    now = chaos.settle()
    if state in ("running", "orphaned", "lost") and now != "running":
        chaos.check_resume()
    if state == "stopped" and now not in OVER:
        assert chaos.world.json("stop", chaos.session)["state"] == "stopped"
    if state in ("orphaned", "lost"):
        chaos.kill_keeper()
    if state == "lost":
        chaos.world.kill_machine(chaos.session)


def words(chaos: Chaos, action: Sequence[str]) -> tuple[str, ...]:
    """Return a command's words with the workspace's path."""
    return tuple(str(chaos.workspace) if word == "WORKSPACE" else word for word in action)


def die(chaos: Chaos, death: Death) -> str:
    """Bring about one death and check what must hold after it; the state that it left."""
    bring_to(chaos, death.step.begin)
    chaos.gate.hold(death.step.name)
    chaos.act(*words(chaos, death.step.action))
    held = chaos.held()
    chaos.find_session()
    chaos.kill(death.victim, held)
    chaos.end_command()
    chaos.find_session()
    state = chaos.check_truth()
    chaos.check_workspace()
    return state


def chain(chaos: Chaos, deaths: Sequence[Death]) -> None:
    """One session's life with all these deaths in it."""
    for death in deaths:
        began = time.monotonic()
        try:
            state = die(chaos, death)
        except BaseException as error:
            error.add_note(f"at {death}")
            raise
        say(f"  {death}: {state}, {time.monotonic() - began:.1f} s")
    if chaos.session:
        chaos.settle()
        chaos.check_resume()
        chaos.check_workspace()
    chaos.check_nothing_left()


def run_chain(deaths: Sequence[Death], folder: Path, image: ImageSet) -> None:
    """Go through one chain in a folder of its own."""
    socket = folder / "gate"
    with Gate(socket) as gate:
        chaos = Chaos(folder, store_of(image), gate, socket)
        try:
            chain(chaos, deaths)
        finally:
            chaos.close()


def say(text: str) -> None:
    """Tell whoever watches how far it is."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Go through the steps that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.chaos")
    parser.add_argument("--all", action="store_true", help="every step with every victim")
    parser.add_argument("--step", action="append", default=[], help="only steps of this name")
    parser.add_argument("--victim", action="append", default=[], help="only this victim")
    options = parser.parse_args()
    image, failed = vmlab.lab_image(), 0
    deaths = [Death(step, victim) for step in STEPS for victim in step.victims]
    if options.step or options.victim:
        deaths = [
            death
            for death in deaths
            if (not options.step or death.step.name in options.step)
            and (not options.victim or death.victim in options.victim)
        ]
    elif not options.all:
        parser.error("say --all, --step or --victim")
    for number, death in enumerate(deaths, 1):
        say(f"{number}/{len(deaths)} {death}")
        with tempfile.TemporaryDirectory(prefix="chaos") as name:
            try:
                run_chain([death], Path(name), image)
            except Exception:  # one that fails must not hide the others
                traceback.print_exc()
                failed += 1
    say(f"{len(deaths) - failed} of {len(deaths)} hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
