"""A real machine that hangs before its guest answers: a second one is started, and works."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from app.keeper.starting import AGAIN
from tests.e2e.chaos import RUN, words
from tests.e2e.chaos_gate import Gate
from tests.e2e.chaos_world import Chaos
from tests.e2e.sessions import store_of
from tests.sampling import FULL

if TYPE_CHECKING:
    from pathlib import Path

    from vm.image.store import ImageSet

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(not FULL, reason="a start waits 45 s before it gives a machine up"),
]


def test_a_machine_that_hangs_gives_way_to_a_second(tmp_path: Path, guest_image: ImageSet) -> None:
    socket = tmp_path / "gate"
    with Gate(socket) as gate:
        chaos = Chaos(tmp_path, store_of(guest_image), gate, socket)
        try:
            gate.hold("boot.noted")
            chaos.act(*words(chaos, RUN))
            held = chaos.held()
            chaos.find_session()
            hung = chaos.world.state(chaos.session).machine
            assert hung is not None
            os.kill(hung.pid, signal.SIGSTOP)
            held.release()
            chaos.end_command()

            chaos.world.wait_for(chaos.session, "state", "running", seconds=180)
            state = chaos.world.state(chaos.session)
            assert state.machine != hung
            assert not hung.alive
            assert [text for text in state.notices if text.startswith(AGAIN)]
            logged = (chaos.world.paths.session(chaos.session) / "keeper.log").read_text()
            assert "did not answer" in logged
            assert chaos.world.json("stop", chaos.session)["state"] == "stopped"
            chaos.check_resume()
            assert not [
                text for text in chaos.world.state(chaos.session).notices if text.startswith(AGAIN)
            ]
            chaos.check_workspace()
            chaos.check_nothing_left()
        finally:
            chaos.close()
