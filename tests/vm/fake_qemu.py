"""A program that speaks as much QMP as the tests of the machine need. Run by machine_fakes.py."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = {"qemu": {"major": 7, "minor": 2, "micro": 0}, "package": ""}
GREETING: dict[str, Any] = {"QMP": {"version": VERSION, "capabilities": []}}


REGISTERS = """CPU#0
RAX=0000000000000000 RBX=0000000000000001
RIP=ffffffff81c0de42 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1

CPU#1
RIP=00007f0000401000 RFL=00000202 [-------] CPL=3 II=0 A20=1 SMM=0 HLT=0
"""


def listener(name: str) -> socket.socket:
    """Listen where QEMU was told to have the socket of this name."""
    beginning = f"socket,id={name},path="
    for word in sys.argv:
        if word.startswith(beginning):
            made = socket.socket(socket.AF_UNIX)
            made.bind(word.removeprefix(beginning).split(",")[0])
            made.listen(1)
            return made
    raise SystemExit(f"no socket {name} was asked for")


def answer(mode: str, command: str) -> dict[str, Any] | None:
    if command == "quit" and mode in ("stubborn", "deaf"):
        return None
    if command == "refused":
        return {"error": {"class": "GenericError", "desc": "it does not please me"}}
    if command == "query-status" and mode == "mute":
        return {"return": {"status": "running", "running": True}}
    if command == "human-monitor-command":
        return {"return": REGISTERS.replace("\n", "\r\n")}
    return {"return": {}}


def requests(client: socket.socket) -> Iterator[dict[str, Any]]:
    """Cut the stream into JSON objects; QMP needs no line ends."""
    text = ""
    while chunk := client.recv(65536):
        text += chunk.decode()
        while text := text.lstrip():
            try:
                request, end = json.JSONDecoder().raw_decode(text)
            except ValueError:
                break
            text = text[end:]
            yield request


def serve(mode: str, client: socket.socket) -> None:
    client.sendall(json.dumps(GREETING).encode() + b"\n")
    for request in requests(client):
        said = answer(mode, request["execute"])
        if said is not None:
            if "id" in request:
                said["id"] = request["id"]
            client.sendall(json.dumps(said).encode() + b"\n")
        if request["execute"] == "stop":
            event: dict[str, Any] = {"event": "STOP", "data": {}, "timestamp": {}}
            client.sendall((json.dumps(event) + "\n").encode() * 1000)
        if request["execute"] == "quit" and said is not None:
            raise SystemExit(0)


def main() -> None:
    mode = sys.argv[1]
    if mode == "broken":
        raise SystemExit("qemu: the moon is in the wrong phase")
    if mode == "full":
        raise SystemExit("qemu: write: No space left on device")
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "silent":
        time.sleep(60)  # longer than anybody waits for its monitor
    _mute = listener("control") if mode == "mute" else None  # a guest that never says a word
    monitor = listener("qmp")
    while True:
        client, _ = monitor.accept()
        serve(mode, client)
        client.close()


if __name__ == "__main__":
    main()
