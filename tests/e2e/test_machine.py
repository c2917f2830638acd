"""Real machines: boot, commands, links that break, the agent's terminal, the bulk port, the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import asyncssh
import pytest
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED

from app.keeper import guest_clock
from app.keeper.guest_clock import GuestClock
from app.keeper.links import Links
from tests.e2e import vmlab
from tests.sampling import sampled
from tests.vm.broker_lab import certificate
from vm.errors import BootFailed, LinkLost
from vm.machine import checkpoint, ssh
from vm.machine.bulk import BulkClient
from vm.machine.checkpoint import CheckpointFailed
from vm.machine.disks import create_overlay
from vm.machine.guest_exec import (
    Command,
    GuestFailed,
    NoAgent,
    Terminal,
    attach,
    power_off,
    run,
    run_toolkit,
    start_agent,
)
from vm.machine.identity import Identity
from vm.machine.link import reach
from vm.machine.machine import Machine, boot
from vm.machine.process import Process
from vm.machine.spec import Backing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from vm.image.store import ImageSet
    from vm.machine.spec import Disk

pytestmark = pytest.mark.vm

LabVM = vmlab.LabVM

RECONNECTS = sampled(200, 20)
"""Handshakes with an emulated guest: 0.26 s each on an idle host of two cores, four times that
beside other work."""


async def test_a_cold_machine_boots_answers_and_powers_off(cold_vm: LabVM) -> None:
    assert (await cold_vm.run("true")).exit_code == 0
    await cold_vm.sh("echo kept > /workspace/kept.txt")
    assert "CLOCHE ready" in cold_vm.machine.console_tail()
    await cold_vm.machine.stop(20.0, lambda: power_off(cold_vm.ssh))
    assert await cold_vm.machine.wait_exit() == 0
    assert "CLOCHE down" in cold_vm.machine.console_tail()


async def test_exit_codes(forked_vm: LabVM) -> None:
    codes = [
        (await forked_vm.run("true")).exit_code,
        (await forked_vm.run("false")).exit_code,
        (await forked_vm.run("sh", "-c", "exit 42")).exit_code,
        (await forked_vm.run("sh", "-c", "kill -9 $$")).exit_code,
        (await forked_vm.run("sh", "-c", "kill -SEGV $$")).exit_code,
        (await forked_vm.run("no-such-program")).exit_code,
        (await forked_vm.run("/etc/passwd")).exit_code,
    ]
    assert codes == [0, 1, 42, 137, 139, 127, 126]


async def test_words_arrive_as_they_were_given(forked_vm: LabVM) -> None:
    words = ["", " ", "a b", "'", '"', "$HOME", "`id`", "\\", "*", "new\nline", "ä€", ";", "--"]
    result = await forked_vm.run("printf", r"%s\0", *words)
    assert result.stdout.decode().split("\0")[:-1] == words
    result = await forked_vm.run("sh", "-c", 'printf %s "$TRICKY"; pwd', env={"TRICKY": "$(id) '"})
    assert result.stdout == b"$(id) '/workspace\n"


async def test_input_and_both_outputs(forked_vm: LabVM) -> None:
    data = os.urandom(3_000_000)
    result = await run(
        forked_vm.ssh, Command(("sh", "-c", "cat; echo done >&2")), stdin=data, max_output=1 << 22
    )
    assert result.stdout == data
    assert result.stderr == b"done\n"


async def test_large_output_is_capped_and_counted(forked_vm: LabVM) -> None:
    script = "head -c 5000000 /dev/zero; head -c 2000 /dev/zero >&2"
    result = await run(forked_vm.ssh, Command(("sh", "-c", script)), max_output=1000)
    assert (len(result.stdout), result.stdout_bytes, result.stdout_truncated) == (
        1000, 5_000_000, True,
    )  # fmt: skip
    assert (len(result.stderr), result.stderr_bytes, result.stderr_truncated) == (1000, 2000, True)


async def _processes(vm: LabVM) -> str:
    """Return what the toolkit's ps prints: every process of the guest."""
    result = await run_toolkit(vm.ssh, "ps")
    assert b"sshd" in result.stdout
    return result.stdout.decode()


async def test_a_command_out_of_time_is_ended_in_the_guest(forked_vm: LabVM) -> None:
    script = "echo begun; sleep 987 & sleep 987"
    result = await run(forked_vm.ssh, Command(("sh", "-c", script)), timeout_s=2.0)
    assert (result.exit_code, result.timed_out, result.stdout) == (124, True, b"begun\n")
    assert "sleep 987" not in await _processes(forked_vm)
    await forked_vm.ssh.create_process("/bin/enter --cgroup none -- sleep 654", encoding=None)
    async with asyncio.timeout(10.0):
        while "sleep 654" not in await _processes(forked_vm):
            continue  # the list does show what runs in the world


async def test_a_cancelled_command_is_ended_in_the_guest(forked_vm: LabVM) -> None:
    task = asyncio.create_task(forked_vm.run("sleep", "876"))
    async with asyncio.timeout(10.0):
        while "sleep 876" not in await _processes(forked_vm):
            continue
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "sleep 876" not in await _processes(forked_vm)


async def test_a_child_that_keeps_the_pipes_does_not_keep_us(forked_vm: LabVM) -> None:
    started = time.monotonic()
    result = await forked_vm.run("sh", "-c", "sleep 987 & echo out; exit 3")
    assert (result.exit_code, result.timed_out, result.stdout) == (3, False, b"out\n")
    assert time.monotonic() - started < 120.0  # not the program's 987 s


async def test_the_agent_has_no_power(forked_vm: LabVM) -> None:
    status = await forked_vm.sh("cat /proc/self/status")
    assert re.findall(r"^Cap\w+:\s*(\S+)", status, re.M) == ["0000000000000000"] * 5
    assert re.search(r"^NoNewPrivs:\s*1$", status, re.M)
    assert (await forked_vm.sh("id -u; id -g; id -G")).split() == ["1000"] * 3
    assert (await forked_vm.run("cat", "/proc/1/environ")).exit_code != 0
    assert (await forked_vm.run("mount", "-t", "tmpfs", "none", "/mnt")).exit_code != 0
    assert (await forked_vm.run("touch", "/etc/x")).exit_code != 0


async def test_the_toolkit_cannot_be_seen_from_the_world(forked_vm: LabVM) -> None:
    """Neither by path nor through processes: not the session's key, sshd or the scratch disk."""
    paths = "/session /bin/enter /libexec /scratch /world /dev/vda /dev/vport1p1 /dev/ttyS0"
    for root in (False, True):
        found = await forked_vm.sh(f"for p in {paths}; do [ ! -e $p ] || echo $p; done", root=root)
        assert found == ""
        processes = await forked_vm.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", root=root)
        assert "sh -ec" in processes
        assert "sshd" not in processes


async def test_many_reconnects(forked_vm: LabVM) -> None:
    """Closed well, closed at once, closed while a command runs: each next one must work."""
    slowest = 0.0
    for number in range(RECONNECTS):
        if number % 4 == 1:
            await forked_vm.ssh.create_process("sleep 1000", encoding=None)
        if number % 4 == 2:
            await forked_vm.ssh.create_process("cat /dev/zero", encoding=None)
        if number % 4 == 3:
            forked_vm.ssh.close()
            await forked_vm.ssh.wait_closed()
        started = time.monotonic()
        await forked_vm.reconnect()
        slowest = max(slowest, time.monotonic() - started)
    assert (await forked_vm.run("true")).exit_code == 0
    assert slowest < 60.0  # usually 1: a link that stalls comes back at its deadline
    assert "sleep 1000" not in await _processes(forked_vm)


async def test_reconnect_in_the_middle_of_a_flood(forked_vm: LabVM) -> None:
    for _ in range(3):
        process = await forked_vm.ssh.create_process("cat /dev/zero", encoding=None)
        received = 0
        while received < 1_000_000:
            received += len(await process.stdout.read(65536))
        await forked_vm.reconnect()
    assert (await forked_vm.run("true")).exit_code == 0


async def _raw(path: Path, data: bytes) -> None:
    """Say something to a port and hang up."""
    port = socket.socket(socket.AF_UNIX)
    port.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(20.0):
            await reach(port, path)
            await loop.sock_sendall(port, data)
    finally:
        port.close()


async def test_garbage_on_both_ports(forked_vm: LabVM) -> None:
    forked_vm.ssh.abort()
    await (await forked_vm.bulk()).close()
    hello = b"\x16\x03CLOCHE " + forked_vm.identity.token.encode() + b" HELLO "
    for garbage in (os.urandom(200_000), b"\x16\x03CLOCHE " * 5000, hello, hello + b"x" * 5000):
        await _raw(forked_vm.spec.control_socket, garbage)
        await _raw(forked_vm.spec.bulk_socket, garbage)
    forked_vm.ssh = await ssh.connect(forked_vm.spec.control_socket, forked_vm.identity, 20.0)
    assert (await forked_vm.run("true")).exit_code == 0
    bulk = await BulkClient.connect(forked_vm.spec.bulk_socket, forked_vm.identity.token, 20.0)
    await bulk.ping()
    await bulk.close()


async def test_a_second_host_waits_for_the_first(forked_vm: LabVM) -> None:
    with pytest.raises(LinkLost):
        await ssh.connect(forked_vm.spec.control_socket, forked_vm.identity, 1.0)
    assert (await forked_vm.run("true")).exit_code == 0


async def test_a_wrong_key_or_token_gets_nothing(forked_vm: LabVM) -> None:
    forked_vm.ssh.abort()
    other = Identity.new()
    path = forked_vm.spec.control_socket
    with pytest.raises(LinkLost, match="refused this session's key"):
        await ssh.connect(path, replace(forked_vm.identity, client_key=other.client_key), 10.0)
    with pytest.raises(LinkLost, match="did not show this session's host key"):
        await ssh.connect(path, replace(forked_vm.identity, host_key=other.host_key), 10.0)
    with pytest.raises(LinkLost):
        await ssh.connect(path, replace(forked_vm.identity, token=other.token), 1.5)
    forked_vm.ssh = await ssh.connect(path, forked_vm.identity, 10.0)


async def test_the_agents_own_login_is_for_files_only(forked_vm: LabVM) -> None:
    forked_vm.ssh.abort()
    path = forked_vm.spec.control_socket
    forked_vm.ssh = await ssh.connect(path, forked_vm.identity, 20.0, username="agent")
    async with forked_vm.ssh.start_sftp_client() as files:
        assert "README.md" in await files.listdir("/workspace")
        assert not await files.exists("/session")
        assert not await files.exists("/../../bin/enter")
    process = await forked_vm.ssh.create_process("id", encoding=None, stdin=asyncssh.DEVNULL)
    async with asyncio.timeout(20.0):
        assert b"uid=" not in await process.stdout.read()
    untyped: Any = forked_vm.ssh
    with pytest.raises(asyncssh.ChannelOpenError) as refused:
        await untyped.open_connection("127.0.0.1", 1)
    assert refused.value.code == OPEN_ADMINISTRATIVELY_PROHIBITED


async def test_sshd_opens_the_guests_own_loopback_and_nothing_else(forked_vm: LabVM) -> None:
    untyped: Any = forked_vm.ssh
    for host, code in (
        ("127.0.0.1", OPEN_CONNECT_FAILED),  # it tried, and nobody listens there
        ("198.51.100.1", OPEN_ADMINISTRATIVELY_PROHIBITED),
    ):
        with pytest.raises(asyncssh.ChannelOpenError) as refused:
            await untyped.open_connection(host, 1)
        assert (host, refused.value.code) == (host, code)
    with pytest.raises(asyncssh.ChannelOpenError):
        await untyped.open_unix_connection("/run/hold.sock")
    with pytest.raises(asyncssh.ChannelListenError):
        await untyped.forward_remote_port("127.0.0.1", 0, "127.0.0.1", 1)


async def _until(terminal: Terminal, wanted: bytes) -> bytes:
    seen = b""
    async with asyncio.timeout(20.0):
        while wanted not in seen:
            chunk = await terminal.read()
            assert chunk, (wanted, seen)
            seen += chunk
    return seen


COUNTER = """
trap 'stty size' WINCH
n=0
while read -r word; do n=$((n+1)); echo "got $word $n"; [ "$word" != quit ] || exit 7; done
"""
RUN = 1 << 62


async def test_the_agent_survives_a_lost_link(forked_vm: LabVM) -> None:
    command = Command(("bash", "-c", COUNTER), env={"TERM": "xterm-256color"}, cgroup="agent")
    with pytest.raises(NoAgent, match="no running agent"):
        await attach(forked_vm.ssh, RUN, 0, 80, 24)
    await start_agent(forked_vm.ssh, command, RUN, 80, 24)
    with pytest.raises(GuestFailed, match="busy"):
        await start_agent(forked_vm.ssh, command, RUN + 1, 80, 24)
    terminal = await attach(forked_vm.ssh, RUN, 0, 80, 24)
    await terminal.send(b"first\n")
    seen = await _until(terminal, b"got first 1")
    await forked_vm.reconnect()
    terminal = await attach(forked_vm.ssh, RUN, len(seen), 100, 30)
    assert terminal.begun == len(seen)
    terminal.resize(101, 31)
    await terminal.send(b"second\n")
    assert b"31 101" in await _until(terminal, b"got second 2")  # bash traps when it has read
    await terminal.close()
    terminal = await attach(forked_vm.ssh, 0, 0, 80, 24)
    assert terminal.run == RUN
    await terminal.send(b"quit\n")
    again = await _until(terminal, b"got quit 3")
    assert again.startswith(seen)
    while await terminal.read():
        continue
    assert terminal.status == 7
    await terminal.close()
    ended = await attach(forked_vm.ssh, RUN, 1 << 40, 80, 24)
    assert (await ended.read(), ended.status) == (b"", 7)
    await ended.close()


LINES = 60_000
PRINTER = f"stty -echo; echo begun; read go; seq 1 {LINES}; read end"


async def test_a_flood_that_nobody_reads_waits_and_is_whole(forked_vm: LabVM) -> None:
    """The program waits for a host that records nothing; the host's keys still get through."""
    command = Command(("sh", "-c", PRINTER), cgroup="agent")
    await start_agent(forked_vm.ssh, command, RUN, 80, 24)
    terminal = await attach(forked_vm.ssh, RUN, 0, 80, 24)
    whole = await _until(terminal, b"begun")  # what is typed before would be echoed in between
    await terminal.send(b"go\n")
    whole += await _until(terminal, b"\r\n100\r\n")
    await forked_vm.reconnect()
    terminal = await attach(forked_vm.ssh, RUN, len(whole), 80, 24)
    await terminal.send(b"end\n")
    while data := await terminal.read():
        whole += data
        terminal.recorded(len(whole))
    assert terminal.status == 0
    lines = [int(line) for line in whole.split(b"\r\n") if line.isdigit()]
    assert lines == list(range(1, LINES + 1))


async def test_two_machines_of_one_moment_go_on_with_its_terminal(
    vm_checkpoint: vmlab.Checkpoint,
) -> None:
    async with vmlab.short_folder() as folder:
        async with vmlab.forked_vm(vm_checkpoint) as vm:
            await start_agent(vm.ssh, Command(("bash", "-c", COUNTER), cgroup="agent"), RUN, 80, 24)
            terminal = await attach(vm.ssh, RUN, 0, 80, 24)
            await terminal.send(b"first\n")
            seen = await _until(terminal, b"got first 1")
            vm.ssh.abort()
            await (await vm.bulk()).close()
            vm.identity.save(folder / "identity.json")
            await checkpoint.save(vm.machine, folder / "ram")
            await vm.machine.stop()
            shutil.move(vm.folder / "scratch.qcow2", folder)
        vmlab.link_file(vm_checkpoint.folder / "ws.squashfs", folder / "ws.squashfs")
        below = Backing(vm_checkpoint.folder / "scratch.qcow2", "qcow2", vm_checkpoint.template)
        saved = vmlab.Checkpoint(folder, vm_checkpoint.image, below)
        async with vmlab.forked_vm(saved) as one, vmlab.forked_vm(saved) as two:
            for vm, word in ((one, b"one"), (two, b"two")):
                terminal = await attach(vm.ssh, RUN, len(seen), 80, 24)
                assert terminal.begun == len(seen)
                await terminal.send(word + b"\n")
                await _until(terminal, b"got " + word + b" 2")


async def test_freeze_stops_the_agent_and_thaw_lets_it_go_on(forked_vm: LabVM) -> None:
    loop = "while :; do echo x >> /workspace/ticks; sleep 0.02; done"
    await start_agent(forked_vm.ssh, Command(("sh", "-c", loop), cgroup="agent"), RUN, 80, 24)
    size = "while [ $(stat -c %s ticks 2>/dev/null || echo 0) -le {0} ]; do sleep 0.05; done"
    await forked_vm.sh(size.format(4))
    bulk = await forked_vm.bulk()
    await bulk.freeze()
    first = int(await forked_vm.sh("stat -c %s ticks"))
    second = int(await forked_vm.sh("sleep 0.5; stat -c %s ticks"))
    assert first == second
    listed = await bulk.list_upper("workspace", 100, 1 << 20)
    assert [(e.path, e.size) for e in listed.entries] == [(b"ticks", first)]
    await bulk.thaw()
    await forked_vm.sh(size.format(second))


async def test_both_links_at_once_and_a_lost_one(forked_vm: LabVM) -> None:
    bulk = await forked_vm.bulk()
    await asyncio.gather(
        forked_vm.run("true"), bulk.ping(), bulk.ping(), forked_vm.run("true"), bulk.freeze()
    )
    await bulk.thaw()
    await bulk.close()
    with pytest.raises(LinkLost):
        await bulk.ping()
    again = await BulkClient.connect(forked_vm.spec.bulk_socket, forked_vm.identity.token, 20.0)
    await again.ping()
    await again.close()


async def test_an_sshd_that_dies_is_noticed_and_followed_by_another(forked_vm: LabVM) -> None:
    links = Links(forked_vm.spec, forked_vm.identity, forked_vm.ssh)
    for ending in ("kill -9 $PPID", "kill -TERM $(pidof sshd)"):
        ssh, shells = await links.shells()
        running = asyncio.create_task(run(ssh, Command(("sleep", "1000")), timeout_s=600))
        with pytest.raises(LinkLost):
            async with asyncio.timeout(60):
                await run_toolkit(ssh, f"sh -c '{ending}; sleep 1000'", timeout_s=600)
        with pytest.raises(LinkLost):
            async with asyncio.timeout(60):
                await running
        forked_vm.ssh, shells = await links.shells()
        assert forked_vm.ssh is not ssh
        assert (await run(forked_vm.ssh, Command(("true",)), shells=shells)).exit_code == 0
    await links.close()


async def test_pause_and_resume(forked_vm: LabVM) -> None:
    await forked_vm.machine.pause()
    with pytest.raises(LinkLost):
        await (await forked_vm.bulk()).ping(0.5)
    await forked_vm.machine.resume()
    assert (await forked_vm.run("true")).exit_code == 0


async def test_another_process_adopts_the_machine(forked_vm: LabVM) -> None:
    first = forked_vm.machine
    await first.close()
    forked_vm.machine = await Machine.adopt(first.spec, first.pid, first.start_time)
    assert (await forked_vm.run("true")).exit_code == 0
    with contextlib.closing(Process(first.pid)) as process:
        await forked_vm.machine.stop(5.0)
        assert not process.running


async def test_a_killed_machine_is_noticed_everywhere(forked_vm: LabVM) -> None:
    waiting = asyncio.create_task(forked_vm.run("sleep", "1000"))
    bulk = await forked_vm.bulk()
    os.kill(forked_vm.machine.pid, signal.SIGKILL)
    assert await forked_vm.machine.wait_exit() == -signal.SIGKILL
    with pytest.raises(LinkLost):
        await waiting
    with pytest.raises(LinkLost):
        await bulk.ping()
    with pytest.raises(LinkLost):
        await forked_vm.run("true")


@contextlib.asynccontextmanager
async def _broken_boot(
    image: ImageSet, folder: Path, disks: tuple[Disk, ...]
) -> AsyncGenerator[tuple[Machine, Identity]]:
    scratch = vmlab.template()
    spec = vmlab.lab_spec(image, folder, vmlab.make_workspace(folder), scratch)
    await create_overlay(folder / "scratch.qcow2", scratch)
    identity = Identity.new()
    vmlab.put_secrets(image, spec, identity)
    machine = await Machine.start(replace(spec, disks=disks))
    try:
        yield machine, identity
    finally:
        await machine.stop(1.0)


async def test_a_damaged_memory_is_refused_and_made_again(
    vm_checkpoint: vmlab.Checkpoint,
) -> None:
    async with vmlab.short_folder() as folder:
        bad = folder / "saved"
        bad.mkdir()
        for part in (*vmlab.PARTS, "digests.json"):
            vmlab.link_file(vm_checkpoint.folder / part, bad / part)
        (bad / "ram").unlink()
        shutil.copyfile(vm_checkpoint.folder / "ram", bad / "ram")
        assert vmlab.intact(bad)
        os.truncate(bad / "ram", 5_000_000)
        assert not vmlab.intact(bad)
        with pytest.raises(CheckpointFailed):
            async with vmlab.forked_vm(replace(vm_checkpoint, folder=bad)):
                pass


async def test_a_broken_scratch_disk_shows_the_console(guest_image: ImageSet) -> None:
    async with vmlab.short_folder() as folder:
        bad = folder / "bad.raw"
        bad.write_bytes(b"\0" * (1 << 20))
        spec = vmlab.lab_spec(guest_image, folder, bad, vmlab.template())
        disks = (spec.disks[0], replace(spec.disks[0], serial="ws0"), spec.disks[1])
        broken = replace(disks[2], serial="scratch", read_only=False)
        async with _broken_boot(guest_image, folder, (*disks[:2], broken)) as (vm, identity):
            with pytest.raises(BootFailed) as caught:
                await boot(vm, identity, vmlab.BOOT_DEADLINE_S)
    assert "scratch" in caught.value.console
    assert caught.value.hint


async def test_a_missing_workspace_disk_shows_the_console(guest_image: ImageSet) -> None:
    async with vmlab.short_folder() as folder:
        spec = vmlab.lab_spec(guest_image, folder, folder / "none", vmlab.template())
        disks = (spec.disks[0], spec.disks[2])
        async with _broken_boot(guest_image, folder, disks) as (vm, identity):
            with pytest.raises(BootFailed) as caught:
                await boot(vm, identity, vmlab.BOOT_DEADLINE_S)
    assert "ws0" in caught.value.console


class VmLinks:
    """What a keeper's links are, of a lab machine."""

    def __init__(self, vm: LabVM) -> None:
        self._vm = vm
        self.bulk_lock = asyncio.Lock()

    async def bulk(self) -> BulkClient:
        return await self._vm.bulk()


TLS = """
import os, ssl, tempfile
pem = tempfile.NamedTemporaryFile("w")
pem.write(os.environ["PEM"])
pem.flush()
served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
served.load_cert_chain(pem.name)
asked = ssl.create_default_context(cadata=os.environ["PEM"].partition("-----BEGIN PRIV")[0])
there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
server = served.wrap_bio(there, back, server_side=True)
client = asked.wrap_bio(back, there, server_hostname="restored.example")
for _ in range(4):
    for end in (client, server):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            pass
print(client.version())
"""
"""Shakes hands with itself, and believes only a certificate that is valid now."""


async def test_tls_works_right_after_a_restore(forked_vm: LabVM, tmp_path: Path) -> None:
    # valid since a moment ago: to a clock that stayed behind with the checkpoint it is not yet
    cert, key = certificate(tmp_path, "restored.example", age_s=2.0)
    pem = cert.read_text() + key.read_text()
    result = await forked_vm.run("python3", "-c", TLS, env={"PEM": pem})
    assert result.stdout.startswith(b"TLSv1."), result


async def _off_by(vm: LabVM) -> float:
    """Return by how many seconds the guest's clock is certainly wrong, however long asking took."""
    before = time.time()
    then = float(await vm.sh("date +%s.%N"))
    return max(0.0, before - then, then - time.time())


async def test_the_clock_is_right_after_a_pause(
    forked_vm: LabVM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_clock, "AGAIN_S", 1e6)
    monkeypatch.setattr(guest_clock, "LOOK_S", 1e6)
    links, machine = VmLinks(forked_vm), forked_vm.machine
    news = machine.qmp.events("RESUME")

    async def pause() -> None:
        await machine.pause()
        await asyncio.sleep(4.0)  # the time by which a clock that nobody sets is late
        await machine.resume()
        async with asyncio.timeout(30):
            assert (await anext(news))[0] == "RESUME"

    await pause()
    async with asyncio.timeout(60):
        while await _off_by(forked_vm) <= 2.0:
            pass  # what asking took on a busy host hides a part of it
    clock = GuestClock(cast("Links", links), machine, lambda: False)
    watching = asyncio.create_task(clock.watch())
    async with asyncio.timeout(60):
        while await _off_by(forked_vm) > 1.0:
            assert not watching.done()
        await pause()
        while await _off_by(forked_vm) > 1.0:
            assert not watching.done()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
