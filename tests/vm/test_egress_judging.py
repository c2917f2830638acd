"""The policy as the gateway's judge: held connections, answers, and addresses behind names."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest

from vm.egress.addresses import Own
from vm.egress.judging import PolicyJudge
from vm.egress.kinds import Request
from vm.egress.policy import Policy, Profile
from vm.egress.questions import choice, rule_of
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from vm.egress.kinds import Verdict

STANDARD = Policy(Profile("standard", (parse_rule("*.dev.example", "allow"),), "ask"))
ASKED = Request("shop.test.dev", 443)
WAIT_S = 30.0


class Desk:
    """A judge, and the news of it."""

    def __init__(self, policy: Policy = STANDARD, timeout_s: float = 60.0) -> None:
        self.news = asyncio.Event()
        self.judge = PolicyJudge(policy, self.news.set, timeout_s, Own)

    def hold(self, flow: int, request: Request = ASKED) -> asyncio.Task[Verdict]:
        verdict = self.judge.decide(request)
        assert verdict.action == "ask"
        return asyncio.create_task(self.judge.ask(flow, request, verdict))


async def test_a_listed_name_is_allowed_and_read_along() -> None:
    desk = Desk()
    verdict = desk.judge.decide(Request("pkgs.dev.example", 443))
    assert (verdict.action, verdict.inspect) == ("allow", "tls")
    desk.judge.close()


async def test_an_answer_lets_all_go_on_that_wait_for_the_host() -> None:
    desk = Desk()
    held = [desk.hold(1), desk.hold(2), desk.hold(3, replace(ASKED, port=80))]
    await asyncio.sleep(0)
    (question,) = desk.judge.questions()
    assert (question.host, question.ports, question.waiting) == ("shop.test.dev", (443, 80), 3)
    rule = rule_of(choice(question, "session", wide=False), 0.0)
    desk.judge.change(replace(STANDARD, session=(rule,)))
    verdicts = await asyncio.wait_for(asyncio.gather(*held), WAIT_S)
    assert [(v.action, v.level, v.inspect) for v in verdicts] == [
        ("allow", "session", "tls"),
        ("allow", "session", "tls"),
        ("allow", "session", "http"),
    ]
    assert desk.judge.questions() == ()
    assert desk.judge.decide(ASKED).action == "allow"
    desk.judge.close()


async def test_a_denial_refuses_what_waits() -> None:
    desk = Desk()
    held = desk.hold(1)
    await asyncio.sleep(0)
    desk.judge.change(replace(STANDARD, always=(parse_rule("shop.test.dev", "deny"),)))
    assert (await asyncio.wait_for(held, WAIT_S)).level == "always"
    desk.judge.close()


async def test_nobody_answers() -> None:
    desk = Desk(timeout_s=0.2)
    verdict = await asyncio.wait_for(desk.hold(1), WAIT_S)
    assert (verdict.action, verdict.code) == ("deny", "no-answer")
    desk.judge.close()


async def test_another_wait_is_for_what_waits_already_too() -> None:
    desk = Desk(timeout_s=3600.0)
    held = desk.hold(1)
    await asyncio.sleep(0)
    (before,) = desk.judge.questions()
    desk.judge.change(STANDARD, 7200.0)
    (longer,) = desk.judge.questions()
    assert longer.ends - before.ends == pytest.approx(3600.0)
    desk.judge.change(STANDARD)
    assert desk.judge.questions() == (longer,)
    desk.judge.change(STANDARD, 0.05)
    assert (await asyncio.wait_for(held, WAIT_S)).code == "no-answer"
    desk.judge.close()


async def test_a_client_that_gave_up_leaves_its_question_for_the_next_try() -> None:
    desk = Desk()
    held = desk.hold(1)
    await asyncio.sleep(0)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    (question,) = desk.judge.questions()
    assert question.waiting == 0
    desk.judge.close()


async def test_more_questions_than_may_wait_are_refused() -> None:
    desk = Desk()
    held = [desk.hold(n, Request(f"n{n}.test.dev", 443)) for n in range(60)]
    await asyncio.sleep(0)
    refused = [task.result().code for task in held if task.done()]
    assert refused == ["too-many-questions"] * 10
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    desk.judge.close()


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "::ffff:169.254.169.254"])
async def test_an_allowed_name_that_leads_inside_is_refused(address: str) -> None:
    desk = Desk()
    request = Request("pkgs.dev.example", 443)
    verdict = desk.judge.decide(request)
    found = (ip_address("203.0.113.200"), ip_address(address))
    assert desk.judge.check(replace(request, addresses=found), verdict).action == "deny"
    desk.judge.close()


async def test_an_answer_for_once_that_has_just_ended_still_counts_but_is_checked() -> None:
    desk = Desk()
    allowed = replace(desk.judge.decide(ASKED), action="allow")
    good = replace(ASKED, addresses=(ip_address("93.184.216.34"),))
    assert desk.judge.check(good, allowed).action == "allow"
    bad = replace(ASKED, addresses=(ip_address("192.168.1.1"),))
    assert desk.judge.check(bad, allowed).action == "deny"
    desk.judge.close()
