from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from vm.egress.kinds import Request, Verdict
from vm.egress.policy import Policy, Profile, decide
from vm.egress.questions import (
    MAX_HELD,
    MAX_QUESTIONS,
    ONCE_S,
    SCOPES,
    TIMEOUT_S,
    Answer,
    Choice,
    Question,
    Questions,
    choice,
    choices,
    rule_of,
)
from vm.egress.rules import MAX_PORTS, parse_rule

HOSTS = ("a.x.example", "b.x.example", "x.example", "y.test")
PORTS = (443, 80, 22)
NOBODY = Policy(Profile("standard", (), "ask"))


def with_answer(policy: Policy, given: Choice, now: float) -> Policy:
    """Add an answer to the policy as the keeper does."""
    rule = rule_of(given, now)
    if given.answer == "deny-always":
        return replace(policy, always=(*policy.always, rule))
    if given.scope in ("once", "session"):
        return replace(policy, session=(*policy.session, rule))
    return replace(policy, user=(*policy.user, rule))


class Session(RuleBasedStateMachine):
    """A guest that connects and gives up, a user who answers anything at any time, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = Questions()
        self.policy = NOBODY
        self.now = 0.0
        self.flows = 0
        self.held: dict[int, tuple[str, int, float]] = {}

    def decide(self, request: Request) -> Verdict:
        return decide(request, self.policy, now=self.now)

    def take(self, released: dict[int, Verdict]) -> None:
        for flow, verdict in released.items():
            host, port, _ = self.held.pop(flow)
            assert verdict.action != "ask"
            if verdict.code != "no-answer":
                assert verdict == self.decide(Request(host, port))

    @rule(host=st.sampled_from(HOSTS), port=st.sampled_from(PORTS))
    def connect(self, host: str, port: int) -> None:
        verdict = self.decide(Request(host, port))
        if verdict.action == "ask":
            self.flows += 1
            assert self.questions.hold(self.flows, Request(host, port), verdict.reason, self.now)
            self.held[self.flows] = (host, port, self.now)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        flow = data.draw(st.sampled_from(sorted(self.held)))
        self.questions.gave_up(flow)
        del self.held[flow]

    @precondition(lambda self: self.questions.open())
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(self.questions.open()))
        given = data.draw(st.sampled_from(choices(asked)))
        self.policy = with_answer(self.policy, given, self.now)
        released = self.questions.settle(self.decide, self.now)
        self.take({one.flow: one.verdict for one in released})
        assert asked.host not in [one.host for one in self.questions.open()]
        for port in asked.ports:
            assert self.decide(Request(asked.host, port)).action == given.rule.effect

    @rule(seconds=st.sampled_from((0.5, 10.0, 30.0, 61.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        late = {f for f, (_, _, since) in self.held.items() if self.now - since >= TIMEOUT_S}
        released = self.questions.expire(self.now)
        assert {one.flow for one in released} == late
        assert all(one.verdict.code == "no-answer" for one in released)
        self.take({one.flow: one.verdict for one in released})

    @invariant()
    def each_host_is_one_question_and_all_that_waits_is_asked(self) -> None:
        asked = {one.host: one for one in self.questions.open()}
        assert len(asked) == len(self.questions.open())
        for host, port, _ in self.held.values():
            assert port in asked[host].ports
        assert sum(one.waiting for one in asked.values()) == len(self.held)

    @invariant()
    def something_ends_every_question(self) -> None:
        deadline = self.questions.next_deadline()
        assert (deadline is None) == (not self.questions.open())
        if deadline is not None:
            assert deadline <= self.now + TIMEOUT_S


TestSession = Session.TestCase


def held(questions: Questions, flow: int, host: str, port: int = 443, now: float = 0.0) -> bool:
    return questions.hold(flow, Request(host, port), "No rule.", now)


def test_the_answer_holds_for_the_next_try_of_a_client_that_gave_up() -> None:
    questions = Questions()
    assert held(questions, 1, "x.example")
    questions.gave_up(1)
    (asked,) = questions.open()
    assert asked.waiting == 0
    policy = with_answer(NOBODY, choice(asked, "session", wide=False), 10)
    assert questions.settle(lambda request: decide(request, policy), 10) == []
    assert questions.open() == ()
    assert decide(Request("x.example", 443), policy).action == "allow"


def test_a_wide_answer_lets_the_neighbour_go_on_too() -> None:
    questions = Questions()
    assert held(questions, 1, "a.x.example")
    assert held(questions, 2, "b.x.example")
    assert held(questions, 3, "b.x.example", 22)
    wide = choice(questions.open()[0], "session", wide=True)
    assert wide.text == "allow *.x.example:443 in this session"
    policy = with_answer(NOBODY, wide, 0)
    released = questions.settle(lambda request: decide(request, policy), 5.0)
    assert [(one.flow, one.verdict.action, one.held_s) for one in released] == [
        (1, "allow", 5.0),
        (2, "allow", 5.0),
    ]
    (left,) = questions.open()
    assert (left.host, left.ports) == ("b.x.example", (22,))


def test_an_answer_is_about_the_ports_that_were_shown() -> None:
    questions = Questions()
    assert held(questions, 1, "x.example", 443)
    (shown,) = questions.open()
    assert held(questions, 2, "x.example", 5432)
    policy = with_answer(NOBODY, choice(shown, "always", wide=False), 0)
    released = questions.settle(lambda request: decide(request, policy), 0)
    assert [one.flow for one in released] == [1]
    assert [one.ports for one in questions.open()] == [(5432,)]


def test_every_choice_shows_exactly_what_it_writes() -> None:
    asked = Question("pkgs.x.example", (443, 8443), 0, 60, 1)
    assert [one.text for one in choices(asked)] == [
        "allow pkgs.x.example:443,8443 for 60 s",
        "allow pkgs.x.example:443,8443 in this session",
        "allow pkgs.x.example:443,8443 in every session on this workspace",
        "allow pkgs.x.example:443,8443 in every session",
        "deny pkgs.x.example in this session",
        "deny pkgs.x.example in every session on this workspace",
        "deny pkgs.x.example in every session",
        "allow *.x.example:443,8443 in this session",
        "allow *.x.example:443,8443 in every session on this workspace",
        "allow *.x.example:443,8443 in every session",
        "deny *.x.example in this session",
        "deny *.x.example in every session on this workspace",
        "deny *.x.example in every session",
    ]


@given(st.sampled_from(HOSTS), st.sets(st.sampled_from(PORTS), min_size=1))
def test_the_text_of_every_choice_reads_back_as_its_rule(host: str, ports: set[int]) -> None:
    for one in choices(Question(host, tuple(ports), 0, 60, 1)):
        again = parse_rule(one.rule.text, one.rule.effect, origin=one.rule.origin)
        assert again == one.rule
        assert SCOPES[one.answer] == (one.rule.effect, one.scope)


@pytest.mark.parametrize(("host", "answer"), [("x.org", "session"), ("a.x.org", "once")])
def test_nothing_widens_to_a_top_level_or_for_once(host: str, answer: Answer) -> None:
    asked = Question(host, (443,), 0, 60, 1)
    with pytest.raises(ValueError, match="no wider answer"):
        choice(asked, answer, wide=True)
    assert not any(one.wide for one in choices(Question("x.org", (443,), 0, 60, 1)))


def test_once_is_for_a_while_and_nothing_else_is() -> None:
    asked = Question("x.example", (443,), 0, 60, 1)
    for one in choices(asked):
        assert rule_of(one, 7.0).until == (7.0 + ONCE_S if one.answer == "once" else None)


def test_a_guest_cannot_ask_without_end() -> None:
    questions = Questions()
    for number in range(MAX_QUESTIONS):
        assert held(questions, number, f"h{number}.example")
    assert not held(questions, 1000, "more.example")
    assert held(questions, 1001, "h0.example")
    for port in range(1, MAX_PORTS):
        assert held(questions, 2000 + port, "h1.example", port)
    assert not held(questions, 3000, "h1.example", 9999)
    flow = 10_000
    while held(questions, flow, "h0.example"):
        flow += 1
    assert sum(one.waiting for one in questions.open()) == MAX_HELD


def test_a_question_that_is_tried_again_stays_one() -> None:
    questions = Questions()
    assert held(questions, 1, "x.example", now=0)
    assert held(questions, 2, "x.example", now=50)
    assert [one.flow for one in questions.expire(60)] == [1]
    (asked,) = questions.open()
    assert (asked.first_seen, asked.ends, asked.waiting) == (0, 110, 1)
    assert [one.flow for one in questions.expire(110)] == [2]
    assert questions.open() == ()
    assert questions.next_deadline() is None
