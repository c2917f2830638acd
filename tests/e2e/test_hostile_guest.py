"""Root in the agent's world stays in it, and what it leaves on disk stays a list of changes."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from app.wire_text import to_bytes
from tests.e2e import vmlab
from tests.e2e.sessions import World, tree
from tests.sampling import sampled

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.vm

LabVM = vmlab.LabVM

ESCAPE = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
CLONES = {"user, mounts": 0x10020000, "user, mounts, pids, cgroups": 0x32020000}

def seen(how):
    found = [name for name in ("/session", "/init", "/modules", "/run/hold.sock", "/scratch")
             if os.path.exists(name)]
    ports = [name for name in os.listdir("/dev") if name.startswith(("v", "sd", "hvc"))]
    if found or ports:
        print(how, found, ports)

def child(how, work):
    if not os.fork():
        try:
            work()
        except OSError:
            pass
        seen(how)
        os._exit(0)
    os.wait()

def chroot():
    os.makedirs("/tmp/jail", exist_ok=True)
    root = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/jail")
    os.fchdir(root)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")

def namespace(flags):
    def work():
        uid = os.getuid()
        if libc.unshare(flags):
            return
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        for place in (b"/", b"/workspace", b"/proc", b"/proc/sys", b"/sys", b"/dev", b"/run"):
            if not libc.umount2(place, 2):
                print("unmounted", place)
        for kind in (b"proc", b"sysfs", b"debugfs", b"tracefs", b"ext4", b"squashfs"):
            if not libc.mount(b"/dev/vda", b"/mnt", kind, 0, None):
                print("mounted", kind)
        # a new root beside the old one: what lies under the world must not come to light
        os.makedirs("/run/user/1000/n", exist_ok=True)
        if not libc.mount(b"n", b"/run/user/1000/n", b"tmpfs", 0, None):
            os.chown("/run/user/1000/n", 0, 0)
            os.mkdir("/run/user/1000/n/old")
            libc.syscall(155, b"/run/user/1000/n", b"/run/user/1000/n/old")
            libc.umount2(b"/", 2)
            os.chdir("/")
    return work

seen("at once")
child("chroot", chroot)
for name, flags in CLONES.items():
    child(name, namespace(flags))
for name in ("/proc/1/root/init", "/proc/1/mem", "/proc/1/environ", "/proc/1/fd/0", "/proc/kcore"):
    try:
        open(name, "rb").read(1)
        print("read", name)
    except OSError:
        pass
for kind, number in ((0o20000, os.makedev(245, 1)), (0o60000, os.makedev(254, 0))):
    try:
        os.mknod("/tmp/node", kind | 0o600, number)
        print("made a node", number)
    except OSError:
        pass
try:
    os.mknod("/workspace/whiteout", 0o20000, 0)
    print("forged a whiteout")
except OSError:
    pass
open("/workspace/forged", "w").close()
for name in ("opaque", "redirect", "metacopy"):
    try:
        os.setxattr("/workspace/forged", f"trusted.overlay.{name}", b"y")
        print("forged", name)
    except OSError:
        pass
for what, number, arguments in (("kexec", 246, (0, 0, 0, 0)), ("module", 175, (0, 0, b"")),
                                ("reboot", 169, (0xFEE1DEAD, 672274793, 0x1234567, 0)),
                                ("handles", 304, (-100, 0, 0)), ("bpf", 321, (0, 0, 0))):
    if libc.syscall(number, *arguments) >= 0 or ctypes.get_errno() not in (1, 38):
        print(what, ctypes.get_errno())
libc.kill(1, 9)
print("tried everything")
"""


@pytest.mark.parametrize("root", [True, False])
async def test_the_world_has_no_way_out(root: bool, forked_vm: LabVM) -> None:
    done = await forked_vm.run("python3", "-c", ESCAPE, root=root)
    assert done.stdout.decode().splitlines() == ["tried everything"], done
    # the toolkit goes on, and nothing of the session's secrets can be read in the world
    for secret in (forked_vm.identity.token, "BEGIN OPENSSH PRIVATE KEY"):
        script = "cat /proc/*/environ /proc/*/cmdline /etc/hosts /run/* 2>/dev/null || true"
        assert secret not in await forked_vm.sh(script, root=True)


DEVICES = r"""
import os, pty, subprocess
flags = next(line.split()[5] for line in open("/proc/self/mountinfo") if line.split()[4] == "/dev")
print(flags.split(",")[:3])
for name in ("/dev/fill", "/dev/null/x", "/dev/sub", "/dev/pts/fill"):
    try:
        os.mkdir(name) if name.endswith("sub") else open(name, "xb").close()
        print("made", name)
    except OSError:
        pass
for work in (lambda: os.chmod("/dev/null", 0o600), lambda: os.remove("/dev/zero"),
             lambda: os.symlink("/x", "/dev/x"), lambda: os.chown("/dev/full", 1000, 1000)):
    try:
        work()
        print("changed a node")
    except OSError:
        pass
with open("/dev/null", "wb") as null, open("/dev/urandom", "rb") as random:
    null.write(random.read(4096))
with open(f"/dev/shm/{os.getuid()}", "wb") as shared:
    shared.write(bytes(1 << 20))
main, end = pty.openpty()
assert os.ttyname(end).startswith("/dev/pts/")
assert os.isatty(end) and os.open(os.ttyname(end), os.O_RDWR | os.O_NOCTTY)
script = ["script", "-qec", "tty; echo to the terminal > /dev/tty", "/dev/null"]
lines = subprocess.run(script, stdin=subprocess.DEVNULL, capture_output=True).stdout.split()
print(lines[0].startswith(b"/dev/pts/"), b" ".join(lines[1:]).decode())
"""


@pytest.mark.parametrize("root", [True, False])
async def test_devices_work_and_their_folder_cannot_be_filled(root: bool, forked_vm: LabVM) -> None:
    done = await forked_vm.run("python3", "-c", DEVICES, root=root)
    assert done.stdout.decode().splitlines() == [
        "['ro', 'nosuid', 'noexec']",
        "True to the terminal",
    ], done
    # a file in there would take the memory of the toolkit, which serves the links
    assert (await forked_vm.sh("head -c 64M /dev/zero > /dev/fill || echo no", root=root)) == "no\n"


MANY = sampled(3000, 500)
NAMES = rb"""
import os
os.chdir(b"/workspace")
def put(name, data=b"evil\n", mode=0o755):
    if b"/" in name:
        os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as file:
        file.write(data)
    os.chmod(name, mode)
for folder in (b".git", b".GIT", b"git~1", b".git ", b"sub/.git", b"sub/.Git", b".g\xe2\x80\x8cit"):
    put(folder + b"/hooks/pre-commit")
    put(folder + b"/config", b"[core]\nfsmonitor = touch pwned\n")
for name in (b"\x1b]0;title\x07", b"\x1b[2J", b"a\nb", b"\xff", b"$(touch pwned)", b"-rf",
             b"a\\..\\b"):
    put(name)
for name, target in ((b"abs", b"/etc/passwd"), (b"up", b"../../outside"), (b"into", b".git/config"),
                     (b"d/up", b"../../outside/x")):
    os.makedirs(b"d", exist_ok=True)
    os.symlink(target, b"link-" + name if b"/" not in name else name)
os.symlink(b"d", b"through")
os.mkfifo(b"pipe")
with open(b"sparse", "wb") as file:
    file.truncate(100 << 30)
put(b"setuid", mode=0o6755)
os.remove(b"victim")
os.symlink(b"../outside", b"victim")      # a file becomes a link that leads out
os.rename(b"folder", b"moved")
os.symlink(b"../outside", b"folder")      # and so does a folder
for number in range(MANY):
    put(b"many/%d" % number, b"%d" % number, 0o644)
""".replace(b"MANY", b"%d" % MANY)


def test_what_a_guest_names_never_becomes_a_path_of_the_host(world: World, tmp_path: Path) -> None:
    workspace, outside = tmp_path / "in/project", tmp_path / "in/outside"
    for folder in (workspace / "folder", outside, workspace / ".git/hooks"):
        folder.mkdir(parents=True)
    (workspace / "victim").write_text("mine\n")
    (workspace / "folder/x").write_text("mine\n")
    (outside / "x").write_text("outside\n")
    (workspace / ".git/config").write_text("[core]\n")
    before, git = tree(outside), tree(workspace / ".git")
    session = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "state", "running")
    made = world.run(
        "exec", session, "--root", "--", "python3", "-", stdin=NAMES.replace(b"MANY", b"%d" % MANY)
    )
    assert made.status == 0, made

    wide = world.run("merge", "--json", session, "--accept", "*").json
    assert len(wide["written"]) > MANY
    held = [os.fsdecode(to_bytes(one["path"])) for one in wide["held"]]
    merged = world.run("merge", "--json", session, *(f"--accept={name}" for name in held)).json
    refused = {item["path"] for item in merged["skipped"]}
    assert {"link-abs", "link-up", "victim", "folder", "d/up", "git~1/config"} <= refused
    assert tree(outside) == before
    assert tree(workspace / ".git") == git
    root = os.fsencode(workspace)
    for place, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            assert os.path.realpath(path).startswith(root), path
            assert not os.lstat(path).st_mode & 0o6000
            assert (place == root and name == b".git") or b"git" not in name.lower(), path
    assert not (workspace / "pwned").exists()
    for command in ("changes", "diff", "merge", "logs", "ps"):
        shown = world.run(command, *([session] if command != "ps" else []))
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", shown.stdout + shown.stderr), command
    stored = world.paths.session(session)
    kept = [path.name for path in stored.rglob("*") if not path.is_dir()]
    assert not [name for name in kept if "pre-commit" in name or "\x1b" in name]
