"""Programs in the guest: one-off commands, the agent itself, its terminal, the end."""

from __future__ import annotations

from vm.machine.agent import GuestFailed, power_off, start_agent
from vm.machine.commands import Command, ExecResult, run, run_toolkit
from vm.machine.held_terminal import NoAgent, OldImage, Terminal, attach

__all__ = [
    "Command",
    "ExecResult",
    "GuestFailed",
    "NoAgent",
    "OldImage",
    "Terminal",
    "attach",
    "power_off",
    "run",
    "run_toolkit",
    "start_agent",
]
