"""Programs in the guest: one-off commands, the agent itself, its terminal, the end."""

from __future__ import annotations

from vm.machine.agent import (
    GuestFailed,
    Terminal,
    agent_running,
    agent_status,
    attach,
    power_off,
    start_agent,
)
from vm.machine.commands import Command, ExecResult, run, run_toolkit

__all__ = [
    "Command",
    "ExecResult",
    "GuestFailed",
    "Terminal",
    "agent_running",
    "agent_status",
    "attach",
    "power_off",
    "run",
    "run_toolkit",
    "start_agent",
]
