"""Words that are empty, as a variable that a script forgot to set: they never mean a default."""

from __future__ import annotations

import pytest

from app import main
from app.paths import Paths


@pytest.mark.parametrize(
    "words",
    [
        ("",),
        ("run", "shell", "--detach", "--workspace", ""),
        ("run", "shell", "--detach", "--name="),
        ("sandbox", "--workspace", "", "--", "true"),
        ("sandbox", "--cwd", "", "--", "true"),
        ("cp", "", "x:/tmp"),
        ("cp", "x:/etc/passwd", ""),
        ("logs", "x", "--cast", ""),
        ("diff", "x", ""),
        ("port", "x", ""),
        ("merge", "x", "--accept", ""),
        ("egress", "rules", "--session", ""),
        ("stop", ""),
    ],
)
def test_an_empty_word_is_a_usage_error(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(words) == 2
    said = capsys.readouterr()
    first, second = said.err.splitlines()
    assert (said.out, first.endswith(" is empty.")) == ("", True)
    assert second == f"  See: cloche {words[0]} --help".replace("  --", " --")
    assert not Paths.from_environment().state.exists()


def test_the_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(("run", "shell", "--workspace", "")) == 2
    assert "What stands after --workspace is empty." in capsys.readouterr().err
    assert main.run(("nonsense", "--x")) == 2
    assert "  --" not in capsys.readouterr().err
