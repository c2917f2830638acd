from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snapshot.hunks import build_hunks
from snapshot.moved import LEAST_LINES, Moved, moved_runs

BODY = [b"def work(items):\n", b"    for item in items:\n", b"        use(item, again=True)\n"]
REST = [b"line %d\n" % n for n in range(20)]


def runs(old: list[bytes], new: list[bytes]) -> list[Moved]:
    return moved_runs(build_hunks(b"f", old, new), old, new)


def test_a_function_that_moved_is_found_also_when_it_is_indented() -> None:
    assert runs([*BODY, *REST], [*REST, *BODY]) == [Moved(0, 20, 3)]
    assert runs([*BODY, *REST], [*REST, *(b"    " + line for line in BODY)]) == [Moved(0, 20, 3)]


def test_short_runs_and_runs_of_signs_are_none() -> None:
    assert runs([*BODY[:2], *REST], [*REST, *BODY[:2]]) == []
    braces = [b"}\n", b"{\n", b"};\n", b"});\n"]
    assert runs([*braces, *REST], [*REST, *braces]) == []


LINES = st.lists(
    st.sampled_from([b"a line of some length\n", b"b line, long\n", b"c\n"]), max_size=30
)


@given(old=LINES, new=LINES)
def test_both_ends_of_a_run_are_the_same_lines_and_no_line_is_in_two(
    old: list[bytes], new: list[bytes]
) -> None:
    seen_old: set[int] = set()
    seen_new: set[int] = set()
    for run in runs(old, new):
        assert run.lines >= LEAST_LINES
        left, right = range(run.old, run.old + run.lines), range(run.new, run.new + run.lines)
        assert [old[n].strip() for n in left] == [new[n].strip() for n in right]
        assert seen_new.isdisjoint(right)
        seen_old.update(left)
        seen_new.update(right)
