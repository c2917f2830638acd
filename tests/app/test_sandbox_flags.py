"""`cloche sandbox`: what its flags mean, and that nothing is started for a wrong one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from app import main
from app.cli.parser import build, parse
from app.cli.sandbox_flags import request_of
from app.client import checks
from app.client.sandboxes import SandboxSpec
from app.errors import AppError
from app.paths import Paths
from tests.doubles.images import any_image

if TYPE_CHECKING:
    from pathlib import Path

    from app.services.sandbox import SandboxRequest


def asked(*flags: str, cmd: tuple[str, ...] = ("true",)) -> SandboxRequest:
    arguments = parse(build("0"), ["sandbox", *flags], takes_rest=())
    arguments.rest = list(cmd)
    return request_of(arguments)


def refused(*flags: str, cmd: tuple[str, ...] = ("true",)) -> AppError:
    with pytest.raises(AppError) as caught:
        asked(*flags, cmd=cmd)
    assert caught.value.hint
    return caught.value


def test_what_is_asked_for_without_flags() -> None:
    request = asked(cmd=("sh", "-c", "a b"))
    assert request.spec == SandboxSpec(("sh", "-c", "a b"))
    assert (request.timeout_s, request.stdin, request.program.root) == (120, None, False)
    assert (request.program.cwd, dict(request.program.env)) == ("", {})
    assert request.copy_in == request.copy_out == ()


def test_all_flags(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "input").write_bytes(b"x")
    request = asked(
        "--timeout-s", "2.5", "--vcpus", "1", "--memory", "512", "--scratch", "2",
        "--workspace", str(tmp_path), "--image", "mine", "--root", "--cwd", "/tmp",
        "--env", "A=b=c", "--env", "EMPTY=", "--stdin-file", str(tmp_path / "input"),
        "--copy-in", f"{tmp_path / 'in'}:/tmp/a:b", "--copy-out", f"/etc/x:{tmp_path / 'x'}",
        "--copy-out", f"dist:{tmp_path}",
    )  # fmt: skip
    try:
        assert request.spec == SandboxSpec(("true",), tmp_path, "mine", 512, 1, 2)
        assert request.program.env == {"A": "b=c", "EMPTY": ""}
        assert (request.timeout_s, request.program.cwd, request.program.root) == (2.5, "/tmp", True)
        assert [(one.guest, one.host) for one in request.copy_in] == [
            (b"/tmp/a:b", tmp_path / "in")
        ]
        assert [(one.guest, one.host) for one in request.copy_out] == [
            (b"/etc/x", tmp_path / "x"),
            (b"dist", tmp_path / "dist"),
        ]
        assert request.stdin is not None
        assert os.read(request.stdin, 9) == b"x"
    finally:
        os.close(request.stdin or -1)


def test_a_dash_is_our_own_input() -> None:
    assert asked("--stdin-file", "-").stdin == 0


@pytest.mark.parametrize("seconds", ["0", "0.99", "3600.1", "-5", "nan", "inf"])
def test_a_time_out_of_bounds(seconds: str) -> None:
    assert refused(f"--timeout-s={seconds}").code == "usage"


@pytest.mark.parametrize("seconds", ["1", "3600"])
def test_the_bounds_themselves(seconds: str) -> None:
    assert asked("--timeout-s", seconds).timeout_s == float(seconds)


@pytest.mark.parametrize(
    "flag", ["--vcpus=0", "--vcpus=65", "--memory=255", "--scratch=0", "--scratch=1025"]
)
def test_a_size_out_of_bounds_is_refused_and_never_cut_down(flag: str) -> None:
    error = refused(flag)
    assert (error.code, flag.split("=")[1] in error.message) == ("usage", True)


@pytest.mark.parametrize("pair", ["", "A", "=x", "A\0B=c"])
def test_what_sets_no_variable(pair: str) -> None:
    assert refused(f"--env={pair}").code == "usage"


@pytest.mark.parametrize("flag", ["--copy-out", "--copy-in"])
@pytest.mark.parametrize("pair", ["", "a", ":b", "a:", ":"])
def test_what_names_no_two_paths(flag: str, pair: str) -> None:
    assert refused(f"{flag}={pair}").code == "usage"


def test_places_that_cannot_be_copied_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert refused("--copy-out", f"a:{tmp_path}/no/b").code == "not-found"
    assert refused("--copy-out", f"a:{tmp_path}/link").code == "refused"
    twice = ("--copy-out", f"a/x:{tmp_path}", "--copy-out", f"b/x:{tmp_path}")
    assert refused(*twice).code == "usage"


def test_what_cannot_be_copied_in(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert refused("--copy-in", f"{tmp_path}/no:/tmp/x").code == "not-found"
    assert refused("--copy-in", f"{tmp_path}/link:/tmp/x").code == "refused"


def test_input_that_cannot_be_read(tmp_path: Path) -> None:
    assert refused("--stdin-file", str(tmp_path / "no")).code == "not-found"
    assert refused("--stdin-file", str(tmp_path)).hint == f"--copy-in {tmp_path}:GUEST"


def test_what_no_guest_can_be_told() -> None:
    assert refused(cmd=()).hint == "cloche sandbox -- CMD"
    assert refused("--cwd", "sub").hint == "--cwd /workspace/sub"
    assert "UTF-8" in refused(cmd=("\udcff",)).message
    assert "bytes" in refused(cmd=("x" * 200_000,)).message


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has everything."""

    def found(*_: object) -> None:
        return

    monkeypatch.setattr(checks, "check_programs", found)
    monkeypatch.setattr(checks, "check_image", any_image)

    async def fine(*_: object) -> None:
        return

    monkeypatch.setattr(checks, "check_qemu", fine)
    monkeypatch.setattr(checks, "check_jail", fine)


WRONG = (
    (("--timeout-s", "0"), 2, "usage"),
    (("--vcpus", "63"), 125, "host-lacks"),
    (("--workspace", "/no/such/folder"), 125, "not-found"),
    (("--stdin-file", "/no/such/file"), 125, "not-found"),
)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(("flags", "status", "code"), WRONG)
def test_a_refusal_leaves_nothing(
    flags: tuple[str, ...], status: int, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["sandbox", "--json", *flags, "--", "true"]) == status
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (said["ok"], said["error"]["code"], bool(said["error"]["hint"])) == (False, code, True)
    paths = Paths.from_environment()
    assert not paths.state.exists()
    assert not paths.data.exists()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["exec", "one", "ls"], "cloche exec one -- ls"),
        (["exec", "ls", "ls", "-la"], "cloche exec ls -- ls -la"),
        (["exec", "one", "--root", "echo", "a b"], "cloche exec one --root -- echo 'a b'"),
        (["sandbox", "--vcpus", "1", "make", "test"], "cloche sandbox --vcpus 1 -- make test"),
        (["exec", "one", "--rot"], "See: cloche exec --help"),
        (["ps", "one"], "See: cloche ps --help"),
    ],
)
def test_where_a_double_dash_is_missing(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(words) == 2
    assert capsys.readouterr().err.endswith(f"\n  {hint}\n")
