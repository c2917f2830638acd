"""What a session makes of its broker: with it, without it, or not at all. Real brokers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from app.agents import shell
from app.broker.handover import hand_over
from app.broker.record import BrokerRecord, WantedService
from app.errors import AppError
from app.keeper.brokering import STOPPED, WITHOUT, SessionBroker
from app.keeper.ledger import Ledger
from app.keeper.outside import Outside
from app.paths import Paths, private_folder
from app.protocol import CapChange, Meter
from app.records import SessionRecord, StateRecord, read_state, write_record
from tests.app.test_broker_process import CANARY, LAB

if TYPE_CHECKING:
    from pathlib import Path

MODEL: dict[str, Any] = {**LAB, "meter": "openai", "metered": ["GET /v1/**"]}
GIT: dict[str, Any] = {
    "upstream": "https://git.lab.example", "credential": "env:GIT_KEY", "add": "basic",
    "accept": ["basic"], "user": "me", "git": True,
}  # fmt: skip


class Bench:
    """A session on disk and its broker."""

    def __init__(self, root: Path, meter: Meter = Meter(), **services: WantedService) -> None:  # noqa: B008 - frozen
        paths = Paths(*(root / name for name in ("state", "data", "config", "cache", "run")))
        self.folder = paths.session("0123456789")
        self.folder.mkdir(parents=True)
        private_folder(paths.runtime)
        private_folder(paths.sockets(self.folder.name))
        broker = BrokerRecord(services, "5eed" * 10, tokens=1000)
        record = SessionRecord(
            self.folder.name, "n", shell(), "", 0.0, "base", "key", broker=broker
        )
        write_record(self.folder / "session.json", record)
        write_record(self.folder / "state.json", StateRecord(state="running", meter=meter))
        self.session = Ledger(self.folder)
        self.broker = SessionBroker(paths, self.session, lambda entry: None)

    def give(self, env: dict[str, str]) -> int:
        """Hand variables over; the descriptor is the caller's to close."""
        names = tuple(self.session.record.broker.variables())
        descriptor = hand_over({**os.environ, **env}, names)
        self.broker.outside = Outside(variables=descriptor)
        return descriptor

    def notices(self) -> list[str]:
        return list(read_state(self.folder).notices)


async def started(bench: Bench, env: dict[str, str], *, adopted: bool = False) -> None:
    """Start it, look at nothing, and end it with the test's checks in between."""
    descriptor = bench.give(env)
    try:
        await bench.broker.start(ask=True, adopted=adopted)
    finally:
        os.close(descriptor)


async def test_a_required_key_that_is_not_there_ends_the_start(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lab=WantedService(MODEL, "required"))
    with pytest.raises(AppError) as caught:
        await started(bench, {})
    assert caught.value.code == "no-credential"
    text = "shell needs the service lab. The environment variable LAB_KEY is not set."
    assert (caught.value.message, caught.value.hint) == (text, "export LAB_KEY=…")
    assert (bench.broker.hosts, bench.broker.door, dict(bench.broker.env)) == ((), "", {})


async def test_an_optional_key_that_nobody_gave_is_not_missed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lab=WantedService(MODEL), git=WantedService(GIT))
    await started(bench, {"LAB_KEY": CANARY})
    assert bench.broker.hosts == ("lab.cloche.internal",)
    assert bench.broker.env["LAB_URL"] == "http://lab.cloche.internal"
    assert bench.broker.door
    assert bench.notices() == []
    await bench.broker.stop()
    assert not bench.broker.hosts


async def test_one_that_was_meant_to_be_there_is_told_of(tmp_path: Path) -> None:
    broken = {**GIT, "credential": f"file:{tmp_path}/none"}
    bench = Bench(tmp_path, lab=WantedService(MODEL), git=WantedService(broken))
    await started(bench, {"LAB_KEY": CANARY})
    assert len(bench.notices()) == 1
    assert bench.notices()[0].startswith(f"{WITHOUT}git: {tmp_path}/none cannot be read")
    await bench.broker.stop()


async def test_an_agent_without_any_model_is_told_which_it_could_have(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lab=WantedService(MODEL), git=WantedService(GIT))
    await started(bench, {"GIT_KEY": CANARY})
    assert bench.broker.hosts == ("git.cloche.internal",)
    text = f"{WITHOUT}lab: The environment variable LAB_KEY is not set. export LAB_KEY=…"
    assert bench.notices() == [text]
    await bench.broker.stop()


async def test_a_machine_that_runs_goes_on_without_its_key(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lab=WantedService(MODEL, "required"))
    await started(bench, {}, adopted=True)
    assert bench.notices()[0].startswith(f"{WITHOUT}lab: ")
    await bench.broker.stop()
    await started(bench, {"LAB_KEY": CANARY}, adopted=True)
    assert bench.notices() == []
    await bench.broker.stop()


async def test_a_machine_that_runs_goes_on_without_a_broker(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lab=WantedService(MODEL, "required"))
    await started(bench, {"LAB_KEY": CANARY, "SSL_CERT_FILE": "/nonexistent"}, adopted=True)
    assert bench.notices()[0].startswith(f"{WITHOUT}broker: There is no list of trusted")
    assert bench.broker.door == ""


async def test_what_was_used_and_the_cap_outlive_a_keeper(tmp_path: Path) -> None:
    meter = Meter(answers=3, tokens=900, usd=0.5, cap_tokens=2000)
    bench = Bench(tmp_path, meter, lab=WantedService(MODEL))
    await started(bench, {"LAB_KEY": CANARY})
    begun = read_state(bench.folder).meter
    assert begun == msgspec.structs.replace(meter, changed=True, more_tokens=3000)
    with pytest.raises(AppError, match="900 tokens"):
        bench.broker.cap(CapChange(tokens=900))
    assert bench.broker.cap(CapChange(usd=2.5)).cap == "cap of $2.50 and 2,000 tokens"
    await bench.broker.stop()
    kept = read_state(bench.folder).meter
    assert (kept.tokens, kept.cap_tokens, kept.cap_usd) == (900, 2000, 2.5)
    with pytest.raises(AppError, match="no broker"):
        bench.broker.cap(CapChange(usd=5.0))


async def test_answers_at_a_cap_hold_for_the_session_and_outlive_its_keeper(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Meter(answers=3, tokens=2500, usd=0.5), lab=WantedService(MODEL))
    await started(bench, {"LAB_KEY": CANARY})

    def state() -> tuple[int | None, bool, bool]:
        meter = read_state(bench.folder).meter
        return meter.cap_tokens, meter.stopped, any(STOPPED in one for one in bench.notices())

    assert read_state(bench.folder).meter.more_tokens == 3000
    with pytest.raises(AppError, match="Nobody asks"):
        bench.broker.cap(CapChange(answer="raise", asked=17.0))  # it was answered elsewhere
    assert bench.broker.cap(CapChange(answer="stop")).cap == "stopped at the cap"
    assert state() == (1000, True, True)
    assert bench.broker.cap(CapChange(answer="raise")).cap == "cap of 3,000 tokens"
    assert state() == (3000, False, False)
    with pytest.raises(AppError, match="not reached a cap"):
        bench.broker.cap(CapChange(answer="stop"))
    assert bench.broker.cap(CapChange(answer="lift")).cap == "no cap for this session"
    await bench.broker.stop()
    await started(bench, {"LAB_KEY": CANARY})
    assert state() == (None, False, False)
    await bench.broker.stop()


async def test_a_session_without_services_has_no_broker(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.broker.start(ask=True)
    assert (bench.broker.hosts, bench.broker.door) == ((), "")
