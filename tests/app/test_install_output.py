"""What is shown of an installation, and which of its words say why it failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.paths import Paths
from app.services import installing
from app.services.egress_refused import Refused
from app.services.install_output import KEPT_BYTES, SHOWN, InstallOutput
from app.services.sandbox import SandboxReport
from tests.doubles.images import put_image
from vm.image import added, build, store
from vm.image.recipes import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.services.sandbox import SandboxRequest, Streams

RECIPE = Recipe("tool", "a tool", (), "base", "install-it --into {prefix}")
NPM = (
    b"npm http fetch GET 200 https://reg.example/error 12ms (cache miss)\n"
    b"npm WARN deprecated a@1: use b\n"
    b"npm ERR! code E404\n"
    b"npm ERR! 404 Not Found - GET https://reg.example/nothing - Not found\n"
    b"npm ERR! 404 \n"
    b"npm ERR! A complete log of this run can be found in: /root/.npm/_logs/1.log\n"
)
PIP = (
    b"Collecting nothing\n"
    b"  ERROR: Could not find a version that satisfies the requirement nothing\n"
    b"ERROR: No matching distribution found for nothing\n"
)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            NPM,
            "npm ERR! code E404; "
            "npm ERR! 404 Not Found - GET https://reg.example/nothing - Not found",
        ),
        (
            PIP,
            "ERROR: Could not find a version that satisfies the requirement nothing; "
            "ERROR: No matching distribution found for nothing",
        ),
        (b"npm error code ENOSPC\n", "npm error code ENOSPC"),
        (b"one\nsh: 1: nothing: not found\n\n", "sh: 1: nothing: not found"),
        (b"fatal: the remote end hung up\nbye\n", "fatal: the remote end hung up"),
        (b" 10%\r100%\r", "100%"),
        (b"\x1b[2Jodd\x00\xff\n", "[2Jodd\N{REPLACEMENT CHARACTER}"),
        (b"", "it said nothing"),
    ],
)
async def test_the_words_that_say_why(data: bytes, told: str) -> None:
    said = InstallOutput()
    await said.hear(data)
    assert said.reason() == told


async def test_what_is_kept_is_bounded_and_acts_on_no_terminal() -> None:
    said = InstallOutput()
    for _ in range(3):
        await said.hear(b"\x1b]0;x\x07" + b"y" * KEPT_BYTES)
    await said.hear(b"\nthe end\n")
    assert len(said.text) <= KEPT_BYTES
    assert said.text.endswith("y\nthe end\n")
    assert "\x1b" not in said.text


async def test_the_newest_line_is_shown_when_it_comes() -> None:
    said = InstallOutput()
    shown: asyncio.Queue[str] = asyncio.Queue()
    telling = asyncio.create_task(said.tell(lambda what, _: shown.put_nowait(what), 0.5))
    await said.hear(b"one\ntwo\n")
    assert await asyncio.wait_for(shown.get(), 60) == "installing: two"
    await said.hear(b"\x1b[1m" + b"x" * 2 * SHOWN)
    assert await asyncio.wait_for(shown.get(), 60) == f"installing: [1m{'x' * (SHOWN - 3)}"
    telling.cancel()


Ends = tuple[bytes, SandboxReport]


@pytest.fixture
def build_that(monkeypatch: pytest.MonkeyPatch) -> Callable[[Ends], list[SandboxRequest]]:
    """Build the recipe in a machine that says and ends as it is told; what it was asked."""
    images = Paths.from_environment().store / "images"
    put_image(images, toolkit_source=build.toolkit_source(), base_source=build.base_source())

    def run(ends: Ends) -> list[SandboxRequest]:
        asked: list[SandboxRequest] = []

        async def machine(
            _: Paths, request: SandboxRequest, streams: Callable[[str], Streams]
        ) -> SandboxReport:
            asked.append(request)
            to = streams("s1")
            to.begins()
            await to.err(ends[0])
            return ends[1]

        def add(*given: object) -> store.ImageSet:
            return store.find_image(Paths.from_environment().store)

        monkeypatch.setattr(installing, "run_sandbox", machine)
        monkeypatch.setattr(added, "add", add)
        steps: list[str] = []

        def progress(what: str, _: float) -> None:
            steps.append(what)

        installing.make(Paths.from_environment(), RECIPE, progress, force=True)
        assert steps[:2] == ["starting a machine", "installing"]
        return asked

    return run


def test_what_the_machine_is_asked_for(
    build_that: Callable[[Ends], list[SandboxRequest]],
) -> None:
    (asked,) = build_that((b"", SandboxReport(started=True, exit_code=0)))
    assert asked.program.root
    assert asked.program.env["NPM_CONFIG_AUDIT"] == "false"
    assert "install-it --into /programs" in asked.program.argv[-1]
    assert asked.spec.image == "base"


def test_a_failure_says_why_and_where_all_of_it_stands(
    build_that: Callable[[Ends], list[SandboxRequest]],
) -> None:
    with pytest.raises(AppError) as caught:
        build_that((NPM, SandboxReport(started=True, exit_code=1)))
    assert caught.value.message.startswith("Installing tool ended with status 1: npm ERR! code")
    log = Paths.from_environment().cache / "install-tool.log"
    assert caught.value.hint == f"Read what it said: less {log}"
    assert log.read_text().startswith("npm http fetch GET 200")


@pytest.mark.parametrize(
    ("report", "message", "hint"),
    [
        (
            SandboxReport(started=True, timed_out=True),
            "Installing tool ran out of time: half of it",
            "Read what it said",
        ),
        (
            SandboxReport(timed_out=True, message="It waits for 2,048 MiB."),
            "The machine for tool did not start in time. It waits for 2,048 MiB.",
            "Look: cloche doctor",
        ),
        (
            SandboxReport(
                started=True,
                exit_code=1,
                refused=(Refused("reg.example", 443, "unlisted", "No rule.", 3),),
            ),
            "Installing tool ended with status 1: half of it",
            "It was refused: reg.example. Allow a host: cloche egress allow HOST --always",
        ),
    ],
)
def test_each_way_to_fail_has_its_own_words(
    build_that: Callable[[Ends], list[SandboxRequest]],
    report: SandboxReport,
    message: str,
    hint: str,
) -> None:
    with pytest.raises(AppError) as caught:
        build_that((b"half of it\n", report))
    assert caught.value.message == message
    assert caught.value.hint.startswith(hint)
