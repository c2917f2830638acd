"""A network of the test's own, with one host in it: run as `unshare --net --mount python outside.py
FOLDER`, and entered with nsenter.

FOLDER holds `cert.pem` and `key.pem`. The host answers HTTPS at ADDRESS, which only this namespace
knows, keeps what it was sent in `heads`, and repeats it, key and all. `up` appears when all is up.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME = "api.lab.example"
ADDRESS = "93.184.216.34"
"""Of the internet's, so that no block is about it; in here it leads to the test's host."""
NEAR = "93.184.216.35"

USAGE = {"model": "gpt-4o", "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}


def ip(*words: str, inside: int | None = None) -> None:
    """Run ip(8), here or in the host's namespace."""
    enter = ["nsenter", "--target", str(inside), "--net"] if inside else []
    subprocess.run([*enter, "ip", *words], check=True)


class Host(BaseHTTPRequestHandler):
    """Repeats the request's head, and says what it cost."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a request for a model."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def do_GET(self) -> None:
        """Answer any other."""
        with Path("heads").open("a") as file:
            file.write(f"{self.requestline}\n{self.headers}\n")
        body = json.dumps({**USAGE, "you said": str(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def serve() -> None:
    """Be the host, in a namespace of its own."""
    sys.stdin.readline()  # its address is there
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain("cert.pem", "key.pem")
    server = ThreadingHTTPServer((ADDRESS, 443), Host)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    server.serve_forever()


def main() -> None:
    """Make the network, start the host, wait for the end of standard input."""
    os.chdir(sys.argv[1])
    words = ["unshare", "--net", sys.executable, "-P", os.path.abspath(__file__), ".", "host"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        while os.readlink(f"/proc/{host.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            pass  # unshare(1) is about to
        ip("link", "set", "lo", "up")
        ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(host.pid))
        ip("address", "add", f"{NEAR}/31", "dev", "near")
        ip("link", "set", "near", "up")
        ip("address", "add", f"{ADDRESS}/31", "dev", "far", inside=host.pid)
        ip("link", "set", "far", "up", inside=host.pid)
        Path("hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {NAME}\n")
        subprocess.run(["mount", "--bind", "hosts", "/etc/hosts"], check=True)
        host.stdin.write(b"\n")
        host.stdin.flush()
        assert host.stdout.readline() == b"serving\n"
        Path("up").write_text("")
        sys.stdin.read()
        host.kill()


if __name__ == "__main__":
    serve() if sys.argv[2:] == ["host"] else main()
