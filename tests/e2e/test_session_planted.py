"""What root of a session left in its world does not lead the next boot's first process astray."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.sessions import World

pytestmark = pytest.mark.vm

PLANT = r"""
mv /etc /etc.mine && ln -s /session /etc
chmod 755 /root && mv /root /root.mine && ln -s /workspace /root
"""
PLANT_AGAIN = r"""
mv /etc /etc.made && mkdir -p /etc/hosts/full && ln -s ../../session/host_key /etc/hostname
"""
LOOK = r"""
test -d /etc && test ! -L /etc && test -f /etc/hosts && test ! -L /etc/hosts
test "$(cat /etc/hostname)" = "$(hostname)" && grep -q localhost /etc/hosts
test -f /etc.mine/passwd && test -L /root && test "$(stat -c %a /workspace)" = 755
for name in proc sys dev tmp run workspace; do test -d /$name && test ! -L /$name; done
"""


def test_links_in_the_way_of_mounts_are_not_followed(world: World, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    session = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "state", "running")
    for plant, also in ((PLANT, ""), (PLANT_AGAIN, "test -d /etc/hosts.moved-1/full")):
        done = world.run("exec", "--root", session, "--", "sh", "-ec", plant)
        assert done.status == 0, done
        assert world.json("stop", session)["state"] == "stopped"
        assert world.json("resume", session)["state"] == "running"
        looked = world.run("exec", "--root", session, "--", "sh", "-exc", LOOK + also)
        assert looked.status == 0, looked.stderr
        assert world.json("changes", session)["files"] == []
