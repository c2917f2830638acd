"""The methods of `cloche.control`, each one checked, and every error made one of ours."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError, app_error, naming, not_running
from app.keeper import guest_program
from app.keeper.agent_terminal import ENVIRONMENT
from app.keeper.copying import Copies
from app.keeper.guest_files import GuestFiles
from app.keeper.guest_program import HOME, Place
from app.keeper.prompts import clean_prompt
from app.keeper.review_service import ReviewMethods, parse
from app.protocol import (
    MAX_NAME,
    CapChange,
    EgressAnswer,
    ExecResult,
    Forward,
)
from vm.machine import guest_exec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from app.keeper.carrying import ClientSession
    from app.keeper.guest_program import GuestProgram
    from app.keeper.keeper import Keeper
    from app.protocol import Event

log = logging.getLogger(__name__)

MAX_EXEC_OUTPUT: Final = 256 << 10
"""Bytes of each stream in an `exec` answer: both in base64 and the envelope fit one line."""

MAX_EXEC_S: Final = 3600.0


class _Exec(msgspec.Struct, frozen=True):
    argv: list[str]
    root: bool = False
    cwd: str = "/workspace"
    timeout_s: float = 60.0


class _Resume(msgspec.Struct, frozen=True):
    agent: bool = True
    patience_s: float | None = None


class _Rename(msgspec.Struct, frozen=True):
    name: str


class _Send(msgspec.Struct, frozen=True):
    text: str


class _Port(msgspec.Struct, frozen=True):
    host_port: int


class KeeperService:
    """What clients may ask of a keeper."""

    def __init__(self, keeper: Keeper, quit_now: Callable[[], None]) -> None:
        self._keeper = keeper
        self._quit_now = quit_now
        self._copies = Copies(lambda: self._keeper.links())
        self._methods: dict[str, Callable[[msgspec.Raw], Awaitable[object]]] = {
            "info": self._info,
            "exec": self._exec,
            "freeze": self._freeze,
            "thaw": self._thaw,
            "resume": self._resume,
            "rename": self._rename,
            "stop": self._stop,
            "send": self._send,
            "ports": self._ports,
            "add_port": self._add_port,
            "remove_port": self._remove_port,
            "egress_answer": self._egress_answer,
            "egress_reload": self._egress_reload,
            "egress_cap": self._egress_cap,
            "quit": self._quit,
            **ReviewMethods(keeper, self._prompt).methods,
        }

    async def call(self, method: str, params: msgspec.Raw) -> object:
        """Do one method. Raises AppError for everything that a client can be told."""
        found = self._methods.get(method)
        if found is None:
            raise AppError("usage", f"This keeper has no method '{method}'.")
        try:
            return await found(params)
        except Exception as error:  # a client gets one sentence, never a traceback
            known = app_error(error)
            if isinstance(error, msgspec.MsgspecError):
                known = AppError("usage", f"Bad parameters for '{method}': {error}")
            if known is None:
                log.exception("the method %s failed by a fault of Cloche's own", method)
                hint = f"Read: cloche logs {self._keeper.record.id}"
                known = AppError("internal", f"Cloche failed in '{method}'.", hint)
            raise naming(known, self._keeper.record.id) from error

    def events(self) -> AsyncIterator[Event]:
        """Yield what happens from now on."""
        return self._keeper.ledger.events()

    async def _info(self, _: msgspec.Raw) -> object:
        return self._keeper.ledger.info()

    async def _exec(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Exec)
        env = ENVIRONMENT | await self._keeper.world_env()
        command = guest_exec.Command(tuple(asked.argv), root=asked.root, cwd=asked.cwd, env=env)
        ssh, shells = await self._keeper.links().shells()
        done = await guest_exec.run(
            ssh,
            command,
            max_output=MAX_EXEC_OUTPUT,
            timeout_s=min(max(asked.timeout_s, 0.1), MAX_EXEC_S),
            shells=shells,
        )
        return ExecResult(
            done.exit_code,
            done.stdout,
            done.stderr,
            done.stdout_bytes,
            done.stderr_bytes,
            done.timed_out,
        )

    async def _freeze(self, _: msgspec.Raw) -> object:
        return {"generation": await self._keeper.freeze(True)}

    async def _thaw(self, _: msgspec.Raw) -> object:
        return {"generation": await self._keeper.freeze(False)}

    async def _resume(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Resume)
        if asked.agent:
            await self._keeper.network.resumed()
        await self._keeper.resume(agent=asked.agent, patience_s=asked.patience_s)
        return {}

    async def _rename(self, params: msgspec.Raw) -> object:
        name = parse(params, _Rename).name
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise AppError("usage", f"A name has 1 to {MAX_NAME} printable characters.")
        self._keeper.ledger.change(name=name)
        self._keeper.ledger.journal.write("renamed", name)
        return {}

    async def _stop(self, _: msgspec.Raw) -> object:
        await self._keeper.stop()
        return {}

    async def _send(self, params: msgspec.Raw) -> object:
        await self._prompt(parse(params, _Send).text)
        return {}

    async def _prompt(self, text: str) -> None:
        """Type a prompt into the agent's terminal. Raises AppError."""
        text = clean_prompt(text)
        agent, state = self._keeper.agent, self._keeper.ledger.state
        if agent is None or state.state != "running":
            raise not_running(self._keeper.record.id, state.state, state.message, state.hint)
        if state.exit_code is not None:
            hint = f"Start it again: cloche resume {self._keeper.record.id}"
            raise AppError("not-running", "The session's agent has ended.", hint)
        self._keeper.typed()
        await agent.prompt(text)

    async def _ports(self, _: msgspec.Raw) -> object:
        return self._keeper.forwards.list()

    async def _add_port(self, params: msgspec.Raw) -> object:
        return await self._keeper.forwards.add(parse(params, Forward))

    async def _remove_port(self, params: msgspec.Raw) -> object:
        await self._keeper.forwards.remove(parse(params, _Port).host_port)
        return {}

    async def _egress_answer(self, params: msgspec.Raw) -> object:
        return await self._keeper.network.answer(parse(params, EgressAnswer))

    async def _egress_reload(self, _: msgspec.Raw) -> object:
        await self._keeper.network.reload()
        return {}

    async def _egress_cap(self, params: msgspec.Raw) -> object:
        return self._keeper.network.broker.cap(parse(params, CapChange))

    async def _quit(self, _: msgspec.Raw) -> object:
        if self._keeper.stays:
            hint = f"Stop it first: cloche stop {self._keeper.record.id}"
            raise AppError("busy", "The session has a machine.", hint)
        self._quit_now()
        return {}

    async def open_process(
        self,
        argv: tuple[str, ...],
        *,
        root: bool,
        term: tuple[str, int, int] | None,
        place: Place = HOME,
    ) -> GuestProgram:
        """Start a program in the agent's world with open streams. Raises LinkLost."""
        ssh, shells = await self._keeper.links().shells()
        place = Place(place.cwd, {**await self._keeper.world_env(), **place.env})
        return await guest_program.start(
            ssh,
            argv,
            root=root,
            term=term,
            place=place,
            shells=shells,
            typed=self._keeper.make_room,
        )

    async def open_files(self, *, root: bool) -> GuestFiles:
        """Start sftp in the agent's world. Raises LinkLost."""
        return await GuestFiles.open(self._keeper.links(), root=root)

    async def copy(self, client: ClientSession) -> int:
        """Serve one client's copy; the exit status of its session."""
        return await self._copies.serve(client)
