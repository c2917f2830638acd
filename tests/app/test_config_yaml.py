from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import config_yaml
from app.errors import AppError

PATH = Path("/c/config.yaml")


def parse(text: str) -> config_yaml.Document:
    return config_yaml.parse(PATH, text.encode())


def test_reads_data_and_remembers_where_each_value_stands() -> None:
    document = parse("agents:\n  mine:\n    command: [a, b]\n")
    assert document.data == {"agents": {"mine": {"command": ["a", "b"]}}}
    assert document.places["agents", "mine", "command"] == (3, 5)
    assert document.places["agents", "mine", "command", 1] == (3, 18)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\na: 2\n", "2:1", "stands here twice"),
        ("a: [1\nb: 2\n", "2:", "expected"),
        ("a: &x 1\nb: *x\n", "2:4", "aliases"),
        ("a: !!python/object:os.system 1\n", "1:4", "could not determine a constructor"),
        ("? [a]\n: 1\n", "1:3", "plain word"),
        ("<<: {a: 1}\n", "1:1", "plain word"),
        ("a: 2026-99-99\n", "1:4", "cannot be read"),
        ("x\ta: \x01\n", "1:1", "special characters"),
        ("a: !!bool maybe\n", "1:4", "cannot be read"),
        ("a: !!timestamp soon\n", "1:4", "cannot be read"),
        ("a: !!int ''\n", "1:4", "cannot be read"),
        ("a: 0x" + "f" * 9000 + "\n", "1:4", "too large"),
        ('a: "\\UFFFFFFFF"\n', "1:1", "cannot be read"),
        ('a: "\\ud800"\n', "1:4", "half a character"),
        ('"\\udfff": 1\n', "1:1", "half a character"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "1:", "too deep"),
    ],
)
def test_every_fault_names_file_line_and_column(text: str, place: str, words: str) -> None:
    with pytest.raises(AppError) as caught:
        parse(text)
    assert caught.value.code == "bad-config"
    assert caught.value.message.startswith(f"{PATH}:{place}")
    assert words in caught.value.message


def test_bytes_that_are_not_utf8_are_named_by_their_line() -> None:
    with pytest.raises(AppError, match=r"config.yaml:2:1: the file is not UTF-8"):
        config_yaml.parse(PATH, b"a: 1\nb: \xff\n")


def test_a_missing_file_is_no_document(tmp_path: Path) -> None:
    assert config_yaml.load(tmp_path / "none.yaml") is None


def test_neither_links_nor_pipes_nor_huge_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("a: 1\n")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "huge").write_bytes(b"#" * (config_yaml.MAX_CONFIG + 1))
    (tmp_path / "folder").mkdir()
    for name in ("link", "huge", "folder"):
        with pytest.raises(AppError) as caught:
            config_yaml.load(tmp_path / name)
        assert caught.value.code == "unreadable"


@given(st.text(max_size=200))
def test_any_text_is_data_or_one_clean_error(text: str) -> None:
    with contextlib.suppress(AppError, UnicodeEncodeError):
        parse(text)


TAGS = ("bool", "int", "float", "null", "timestamp", "binary", "str", "set", "omap", "pairs", "seq")


@given(st.sampled_from(TAGS), st.text("0123456789abx_.:+-~TZ '\"[]{},\\U", max_size=20))
def test_a_value_that_lies_about_its_kind_is_a_fault_of_the_file(tag: str, value: str) -> None:
    with contextlib.suppress(AppError):
        parse(f"a: !!{tag} {value}\n")
