"""The broker's parts: what is decided without a connection."""

from __future__ import annotations

import base64
import copy
import gzip
import html
import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vm.broker_lab import CANARY
from vm.egress.broker import git, reference, scrub, services, target
from vm.egress.broker.meter import Caps, Totals, cost, raised
from vm.egress.broker.secret import Secret
from vm.egress.broker.usage import Reader, Usage
from vm.egress.kinds import Refused
from vm.errors import BrokerRefused

VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=40)


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret(CANARY.encode(), "none")
    assert CANARY not in f"{secret} {secret!r} {[secret]} %s" % secret
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            way(secret)
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize(
    "value", [b"short", b"two words", b"line\nline2", b"\xff" * 9, b"a" * 20_000]
)
def test_a_value_that_no_header_carries_is_refused_unshown(value: bytes) -> None:
    with pytest.raises(BrokerRefused) as caught:
        Secret(value, "look")
    assert value.decode("latin-1") not in caught.value.message + caught.value.hint


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(marks)]


@given(
    VISIBLE, st.lists(st.integers(0, 14) | st.binary(max_size=12), max_size=8),
    st.lists(st.integers(0, 10_000), max_size=12),
)  # fmt: skip
def test_no_form_of_a_key_passes_any_border(
    value: str, text: list[int | bytes], places: list[int]
) -> None:
    raw = value.encode()
    ways = [
        raw, base64.b64encode(raw), base64.b64encode(b"a" + raw), base64.b64encode(b"ab" + raw),
        base64.urlsafe_b64encode(raw), quote(value, safe="").encode(),
        quote(value, safe="").lower().encode(), raw.hex().encode(), raw.replace(b"/", b"\\/"),
        json.dumps(value).encode(), html.escape(value).encode(), value.encode("utf-16"),
        value.encode("utf-32-be"), b"".join(b"\\u%04X" % byte for byte in raw),
        b"".join(b"%%%02X" % byte for byte in raw),
    ]  # fmt: skip
    data = b"".join(ways[part] if isinstance(part, int) else part for part in text)
    forms = scrub.forms(raw)
    whole = scrub.Scrubber(forms)
    once = whole.feed(data) + whole.finish()
    scrubber = scrub.Scrubber(forms)
    pieces = [scrubber.feed(piece) for piece in cut(data, places)]
    out = b"".join(pieces) + scrubber.finish()
    assert out == once
    assert len(out) == len(data)
    assert not any(form in out.lower() for form in forms)
    if not any(isinstance(part, int) for part in text) and not whole.found:
        assert out == data


def test_what_cannot_begin_a_key_is_not_held_back() -> None:
    scrubber = scrub.Scrubber(scrub.forms(CANARY.encode()))
    assert scrubber.feed(b"data: 1\n\n") == b"data: 1\n\n"
    assert scrubber.feed(b"data: sk-real-C") == b"data: "
    assert scrubber.feed(b"!") == b"sk-real-C!"


@given(st.binary(max_size=60))
def test_a_target_is_plain_or_refused(raw: bytes) -> None:
    try:
        found = target.parse(raw)
    except Refused:
        return
    assert found.path.startswith("/")
    assert ".." not in found.path.split("/")
    assert "//" not in found.path


def test_rules_mean_segments() -> None:
    rule = target.parse_rule("POST /*/models/*:generateContent")
    assert rule.passes("POST", "/v1beta/models/gemini-x:generateContent")
    assert not rule.passes("POST", "/v1beta/models/a/b:generateContent")
    assert not rule.passes("GET", "/v1beta/models/gemini-x:generateContent")
    assert target.parse_rule("GET /a/**").passes("GET", "/a/b/c")
    for wrong in ("get /a", "TRACE /a", "GET a", "GET /a b", "CONNECT /"):
        with pytest.raises(BrokerRefused):
            target.parse_rule(wrong)


def test_references_are_read_and_refused(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(CANARY + "\n")
    key.chmod(0o600)
    at = reference.parse(f"file:{key}")
    assert reference.read(at, {}, []).reveal() == CANARY.encode()
    with pytest.raises(BrokerRefused, match="workspace"):
        reference.read(at, {}, [tmp_path])
    key.chmod(0o640)
    with pytest.raises(BrokerRefused) as caught:
        reference.read(at, {}, [])
    assert caught.value.hint == f"chmod 600 {key}"
    link = tmp_path / "link"
    link.symlink_to(key)
    for wrong in (link, tmp_path, tmp_path / "none"):
        with pytest.raises(BrokerRefused):
            reference.read(reference.parse(f"file:{wrong}"), {}, [])
    env = reference.parse("env:KEY")
    assert reference.read(env, {"KEY": CANARY}, []).reveal() == CANARY.encode()
    with pytest.raises(BrokerRefused, match="KEY is not set"):
        reference.read(env, {}, [])
    done = reference.parse(f"command:{sys.executable} -c 'print(\"a\" * 20)'")
    assert reference.read(done, {}, []).reveal() == b"a" * 20
    for words in ("-c 'print(\"a\" * 99999)'", "-c 'exit(3)'"):
        with pytest.raises(BrokerRefused):
            reference.read(reference.parse(f"command:{sys.executable} {words}"), {}, [])


def test_a_program_that_prints_without_end_is_not_waited_for() -> None:
    endless = f"command:{sys.executable} -c 'while True: print(\"a\" * 4096)'"
    with pytest.raises(BrokerRefused, match="more than a credential can have"):
        reference.read(reference.parse(endless), {}, [])


@pytest.mark.parametrize("text", [CANARY, "env:", "file:key", "keyring:a", "env:A B", "command:'"])
def test_what_is_no_reference_is_not_repeated(text: str) -> None:
    with pytest.raises(BrokerRefused) as caught:
        reference.parse(text)
    assert CANARY not in str(caught.value)


def test_the_guest_gets_addresses_and_placeholders() -> None:
    held = [services.hold(s, Secret(CANARY.encode(), "")) for s in services.builtin().values()]
    env = services.guest_env(held)
    assert env["ANTHROPIC_BASE_URL"] == "http://anthropic.cloche.internal"
    assert env["OPENAI_BASE_URL"] == "http://openai.cloche.internal/v1"
    assert env["ANTHROPIC_API_KEY"].startswith("sk-ant-cloche-")
    assert env["GIT_CONFIG_COUNT"] == "2"
    assert env["GIT_CONFIG_KEY_0"] == "url.http://github.cloche.internal/.insteadOf"
    assert env["GIT_CONFIG_VALUE_0"] == "https://github.com/"
    assert CANARY not in str(env)
    other = services.hold(held[0].service, held[0].secret)
    assert other.placeholder != held[0].placeholder


GOOD = {
    "upstream": "https://api.lab.example", "credential": "env:KEY", "add": "header:x-lab",
    "accept": ["bearer"], "allow": ["GET /**"],
}  # fmt: skip
WRONG: list[tuple[str, object]] = [
    ("upstream", "http://api.lab.example"), ("upstream", "https://a@b.example"),
    ("upstream", "https://10.0.0.1"), ("upstream", "https://b.example/path"),
    ("add", "query"), ("add", "header:cookie"), ("accept", []), ("allow", []), ("allow", "GET /"),
    ("env", {"LD_PRELOAD": "x"}), ("env", {"PATH": "x"}), ("placeholder", "fixed"),
    ("max_request", True), ("meter", "other"), ("push", ["a/b refs/heads/c"]), ("more", 1),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_settings_that_are_wrong_are_named(key: str, value: object) -> None:
    assert services.parse("lab", GOOD).add == "header:x-lab"
    with pytest.raises(BrokerRefused) as caught:
        services.parse("lab", {**GOOD, key: value})
    assert caught.value.hint


def test_a_user_changes_a_service_and_adds_one() -> None:
    all_of_them = services.with_own({"lab": GOOD, "github": {"push": ["me/it refs/heads/agent/*"]}})
    assert all_of_them["lab"].host == "api.lab.example"
    assert all_of_them["github"].push[0].passes("me/it", "refs/heads/agent/one")


OLD, NEW = b"0" * 40, b"a" * 40
RULES = (git.parse_push("Me/It refs/heads/agent/*"),)


def pkt(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line


def commands(*lines: bytes, piece: int = 1 << 20) -> git.Commands:
    data = b"".join(pkt(line) for line in lines) + b"0000PACK"
    reader = git.Commands("me/it", RULES)
    for at in range(0, len(data), piece):
        reader.feed(data[at : at + piece])
    return reader


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_push_that_a_rule_names_passes(piece: int) -> None:
    line = OLD + b" " + NEW + b" refs/heads/agent/one\0 report-status agent=git/2"
    assert commands(line, OLD + b" " + NEW + b" refs/heads/agent/two\n", piece=piece).whole


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("git-push", OLD + b" " + NEW + b" refs/heads/main\0 x"),
        ("git-delete", NEW + b" " + OLD + b" refs/heads/agent/one\0 x"),
        ("git-push-options", OLD + b" " + NEW + b" refs/heads/agent/one\0 push-options"),
        ("git-command", b"push-cert\0x"),
        ("git-command", OLD + b" " + NEW + b" refs/heads/agent/../main\0 x"),
        ("git-command", OLD + b" " + NEW + b" refs/heads/agent/\xff\0 x"),
    ],
)
def test_any_other_push_is_refused(code: str, line: bytes) -> None:
    with pytest.raises(Refused, match=code):
        commands(line)


@given(st.binary(max_size=300))
def test_commands_end_or_are_refused(data: bytes) -> None:
    reader = git.Commands("me/it", RULES)
    try:
        reader.feed(data)
    except Refused:
        return
    assert reader.whole or len(data) < 65_536


def test_git_fetches_by_default_and_pushes_by_rule() -> None:
    def act(method: str, raw: bytes) -> git.Action:
        return git.action(method, target.parse(raw), RULES)[0]

    assert act("GET", b"/a/b.git/info/refs?service=git-upload-pack") == "fetch"
    assert act("POST", b"/a/b/git-upload-pack") == "fetch"
    assert act("GET", b"/me/it.git/info/refs?service=git-receive-pack") == "push-list"
    assert act("POST", b"/Me/It.git/git-receive-pack") == "push"
    for method, raw in [
        ("POST", b"/a/b.git/git-receive-pack"),
        ("GET", b"/a/b.git/info/refs?service=git-receive-pack"),
        ("GET", b"/a/b.git/info/refs"),
        ("GET", b"/a/b.git/HEAD"),
        ("POST", b"/me/it.git/info/lfs/objects/batch"),
    ]:
        with pytest.raises(Refused):
            act(method, raw)


def read(kind: str, data: bytes, events: bool, piece: int = 5) -> Usage | None:
    reader = Reader(kind, events)
    for at in range(0, len(data), piece):
        reader.feed(data[at : at + piece])
    return reader.result()


def test_usage_of_each_form() -> None:
    start = {"type": "message_start", "message": {"model": "claude-sonnet-4-5-20250929", "usage":
        {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}}  # fmt: skip
    delta = {"type": "message_delta", "usage": {"output_tokens": 42}}
    events = b"".join(b"event: x\ndata: %s\n\n" % json.dumps(e).encode() for e in (start, delta))
    said = read("anthropic", events, events=True)
    assert said == Usage("claude-sonnet-4-5-20250929", 10, 5, 0, 42)
    assert said is not None
    assert cost(said) == pytest.approx((10 * 3 + 5 * 0.3 + 42 * 15) / 1e6)
    done = {"type": "response.completed", "response": {"model": "gpt-5", "usage":
        {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}
        }}  # fmt: skip
    stream = b"data: " + json.dumps(done).encode() + b"\n\ndata: [DONE]\n\n"
    assert read("openai", stream, events=True) == Usage("gpt-5", 5, 4, 0, 3)
    part = {"modelVersion": "gemini-x", "usageMetadata": {"promptTokenCount": 7,
        "candidatesTokenCount": 2, "thoughtsTokenCount": 6}}  # fmt: skip
    said = read("google", json.dumps([part, part]).encode(), events=False)
    assert said == Usage("gemini-x", 7, 0, 0, 8)
    assert said is not None
    assert cost(said) is None


@given(st.binary(max_size=200), st.booleans())
def test_hostile_answers_are_no_usage(data: bytes, events: bool) -> None:
    assert read("openai", data, events) is None or b"usage" in data


def test_numbers_that_are_none_do_not_count() -> None:
    for value in (-1, True, 1e5, "9", 10**12, [1]):
        raw = json.dumps({"model": "gpt-5", "usage": {"prompt_tokens": value}}).encode()
        assert read("openai", raw, events=False) is None
    assert read("openai", b"[" * 100_000, events=False, piece=1 << 16) is None
    assert Totals().with_answer(Usage(said=False)).silent == 1
    assert read("openai", gzip.compress(b"{}"), events=False) is None


def test_a_process_with_keys_dumps_no_core() -> None:
    text = (
        "from vm.egress.broker.secret import harden; harden(); import resource, ctypes;"
        "print(ctypes.CDLL(None).prctl(3), resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=root,
        env=dict(os.environ),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"0 0\n"


@given(
    st.integers(1, 10**7), st.integers(1, 10**7), st.integers(0, 10**9), st.floats(0.01, 100),
    st.floats(0.01, 100), st.floats(0, 10**4),
)  # fmt: skip
def test_as_much_again_is_the_first_multiple_above_what_was_used(
    cap: int, step: int, used: int, dollars: float, dollar_step: float, spent: float
) -> None:
    totals = Totals(tokens=used, dollars=spent)
    new = raised(Caps(cap, dollars), Caps(step, dollar_step), totals)
    assert new.tokens is not None
    assert new.dollars is not None
    if not totals.over(Caps(cap, dollars)):
        assert new.tokens == cap + step
        assert new.dollars == pytest.approx(dollars + dollar_step, abs=1e-6)
        return
    if totals.over(Caps(tokens=cap)):
        assert not totals.over(Caps(tokens=new.tokens))
        assert (new.tokens - cap) % step == 0
        assert new.tokens - step <= used
    else:
        assert new.tokens == cap  # it was the other one that was reached
    if totals.over(Caps(dollars=dollars)):
        assert new.dollars > spent - 1e-5
        assert new.dollars - dollar_step <= spent + 1e-5


def test_a_cap_without_a_step_grows_by_itself_and_none_stays_none() -> None:
    assert raised(Caps(7, None), Caps(), Totals(tokens=7)) == Caps(14, None)
    assert raised(Caps(None, 2.5), Caps(9, None), Totals(dollars=2.5)) == Caps(None, 5.0)
    assert raised(Caps(), Caps(5, 5.0), Totals(1, 2)) == Caps()
