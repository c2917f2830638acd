"""What is accepted, as a patch."""

from __future__ import annotations

from app.protocol import Decide
from app.services.patches import accepted_patch
from tests.doubles.keeper import FakeFile, FakeSession, session_info


async def test_a_mode_without_its_file_is_named_as_left_out() -> None:
    info = session_info("a", "a", "demo", "running", "done")
    files = [FakeFile("run.sh", None, b"one\n", mode="100755"), FakeFile("b", b"b\n", b"c\n")]
    session = FakeSession(info, files)
    run, other = (await session.changes()).files
    mode = next(unit.id for unit in run.hunks if unit.aspect == "mode")
    await session.decide([Decide(run.path, "rejected"), Decide(other.path, "accepted")])
    await session.decide([Decide(run.path, "accepted", (mode,))])
    data, left_out = await accepted_patch(session, await session.changes())
    assert (left_out, b"run.sh" in data, b"+c" in data) == (["run.sh"], False, True)
