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


def qmp_path() -> str:
    for word in sys.argv:
        if word.startswith("socket,id=qmp,path="):
            return word.removeprefix("socket,id=qmp,path=").split(",")[0]
    raise SystemExit("no QMP socket was asked for")


def answer(mode: str, command: str) -> dict[str, Any] | None:
    if command == "quit" and mode in ("stubborn", "deaf"):
        return None
    if command == "refused":
        return {"error": {"class": "GenericError", "desc": "it does not please me"}}
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
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(qmp_path())
    listener.listen(1)
    while True:
        client, _ = listener.accept()
        serve(mode, client)
        client.close()


if __name__ == "__main__":
    main()
