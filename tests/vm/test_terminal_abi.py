"""The generated binding: made once, kept safely, made anew when damaged, checked each time."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles.engines import cache_folder, ghostty
from vm.terminal import abi, cell_text, ghostty_rows, ghostty_styles, screen
from vm.terminal import ghostty as library
from vm.terminal.cell_text import CELL_BITS
from vm.terminal.ghostty import STRUCTS, Ghostty

if TYPE_CHECKING:
    from collections.abc import Callable


def works(cache: Path | None) -> bool:
    ffi, lib = abi.load(cache)
    return bool(ffi.string(lib.ghostty_type_json()))


def generated(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.py"))


def test_it_is_made_once_and_used_again(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"
    assert works(cache)
    (module,) = generated(cache)
    first = module.stat().st_mtime_ns
    assert works(cache)
    assert module.stat().st_mtime_ns == first
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert not list(cache.glob("*.tmp"))


@pytest.mark.parametrize("damage", [b"", b"ffi = ", b"\0\0\0", b"import nothing_like_it"])
def test_a_damaged_module_is_made_anew(damage: bytes, tmp_path: Path) -> None:
    assert works(tmp_path / "c")
    (module,) = generated(tmp_path / "c")
    module.write_bytes(damage)
    os.utime(module, (1, 1))
    assert works(tmp_path / "c")
    assert len(module.read_bytes()) > 10_000


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert works(tmp_path)
    assert not generated(tmp_path)


def test_a_link_in_place_of_the_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    assert works(tmp_path / "cache")
    assert not generated(tmp_path / "elsewhere")


def test_without_a_cache_it_is_parsed(tmp_path: Path) -> None:
    assert works(None)
    (tmp_path / "file").write_text("")
    assert works(tmp_path / "file" / "cache")


def test_the_package_itself_is_never_imported() -> None:
    ghostty()
    root = Path(abi.__file__).resolve().parents[2]
    program = (
        f"import sys; sys.path.insert(0, {str(root)!r}); from pathlib import Path\n"
        "from vm.terminal.ghostty import Ghostty\n"
        f"Ghostty(Path({str(cache_folder())!r}))\n"
        "print(*(n for n in ('pyghostty', 'cffi', 'pycparser') if n in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_a_missing_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "PACKAGE", "no_such_package_anywhere")
    with pytest.raises(abi.EngineMissing) as caught:
        abi.load(None)
    assert caught.value.code == "terminal-engine"
    assert "cloche attach" in caught.value.hint
    assert "cloche ssh" in caught.value.hint


def test_a_missing_library_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "LIBRARY", "no-such-library.so")
    with pytest.raises(abi.EngineMissing, match="does not load") as caught:
        abi.load(cache_folder())
    assert "cloche ssh" in caught.value.hint


CHANGES: list[Callable[[dict[str, Any]], None]] = [
    lambda told: told.update(library_version="9.9"),
    lambda told: told["types"]["GhosttyStyle"].update(size=80),
    lambda told: told["types"]["GhosttyStyle"]["fields"]["bold"].update(offset=99),
    lambda told: told["types"]["GhosttyCell"]["bits"]["style_id"].update(lsb=27),
]


@pytest.mark.parametrize("change", CHANGES)
def test_another_layout_is_refused(
    change: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = json.loads

    def loads(raw: bytes) -> dict[str, Any]:
        told: dict[str, Any] = real(raw)
        change(told)
        return told

    monkeypatch.setattr(json, "loads", loads)
    with pytest.raises(abi.EngineMissing, match="terminal engine"):
        Ghostty(cache_folder())


def test_every_struct_we_use_is_one_that_the_library_describes() -> None:
    it = ghostty()
    told = json.loads(it.ffi.string(it.lib.ghostty_type_json()))["types"]
    assert set(STRUCTS) <= set(told)
    assert set(CELL_BITS) <= set(told["GhosttyCell"]["bits"])
    # the twins that stand in for unions must be of the same size
    for ours, theirs in (
        ("ClochePoint", "GhosttyPoint"),
        ("ClocheScroll", "GhosttyTerminalScrollViewport"),
    ):
        assert it.ffi.sizeof(ours) == told[theirs]["size"]
        assert it.ffi.alignof(ours) == told[theirs]["align"]


def test_the_numbers_that_we_know_by_heart_are_the_librarys() -> None:
    lib = ghostty().lib
    ours = {
        "SUCCESS": library.SUCCESS,
        "OUT_OF_SPACE": library.NO_SPACE,
        "CELL_CONTENT_CODEPOINT_GRAPHEME": cell_text.CLUSTER,
        "CELL_CONTENT_BG_COLOR_PALETTE": cell_text.FILL_INDEX,
        "CELL_WIDE_WIDE": cell_text.WIDE,
        "CELL_WIDE_SPACER_TAIL": cell_text.TAIL,
        "CELL_WIDE_SPACER_HEAD": cell_text.SPACER,
        "RENDER_STATE_DIRTY_FULL": ghostty_rows.DIRTY_FULL,
        "STYLE_COLOR_PALETTE": ghostty_styles.BY_INDEX,
        "STYLE_COLOR_RGB": ghostty_styles.BY_RGB,
        "RENDER_STATE_CURSOR_VISUAL_STYLE_BAR": screen.CursorShape.BAR,
        "RENDER_STATE_CURSOR_VISUAL_STYLE_BLOCK_HOLLOW": screen.CursorShape.HOLLOW,
    }
    assert {name: getattr(lib, f"GHOSTTY_{name}") for name in ours} == ours
