"""The engine library's declarations, parsed once and kept as a module that loads in 5 ms.

`pyghostty` parses 80 KB of C on each import (130 … 400 ms of CPU). cffi can write what it parsed as
a Python module instead. That module lies in a private cache folder under a name that says all it
depends on: the declarations, cffi and Python. Without a usable cache the parsing is simply done.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
from pathlib import Path
from typing import Any, cast

import _cffi_backend

from vm.errors import HostLacks

PACKAGE = "pyghostty"
LIBRARY = "libghostty-vt.so"

TWINS = """
typedef struct { uint16_t x; uint32_t y; uint64_t _pad; } ClochePointValue;
typedef struct { GhosttyPointTag tag; ClochePointValue value; } ClochePoint;
typedef struct { intptr_t delta; uint64_t _pad; } ClocheScrollValue;
typedef struct { GhosttyTerminalScrollViewportTag tag; ClocheScrollValue value; } ClocheScroll;
"""
"""Structs of the same layout as two that hold a union: libffi cannot pass those by value."""


REINSTALL = "Run: uv sync --reinstall-package pyghostty"
WITHOUT = "Run: cloche attach SESSION, or cloche ssh SESSION: both need no engine"
"""What to do where there is no build of the engine (it has wheels for glibc and macOS only)."""


class EngineMissing(HostLacks):
    """The terminal engine is not installed, or is not the build that we know."""

    code = "terminal-engine"

    def __init__(self, message: str, hint: str = REINSTALL) -> None:
        super().__init__(message, hint)


def package_folder() -> Path:
    """Return where `pyghostty` lies, without importing it (that is the slow part)."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EngineMissing("The terminal engine pyghostty is not installed here.", WITHOUT)
    return Path(spec.origin).parent


def declarations(folder: Path) -> str:
    """Return the C declarations that the installed package carries, with our twins."""
    namespace: dict[str, Any] = {}
    source = (folder / "_cdef.py").read_text(encoding="utf-8")
    exec(compile(source, "_cdef.py", "exec"), namespace)
    return cast("str", namespace["CDEF"]) + TWINS


def module_name(text: str) -> str:
    """Name the generated module after everything that it depends on."""
    parts = (text, _cffi_backend.__version__, sys.implementation.cache_tag or "", sys.platform)
    return "ghostty_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _private(folder: Path) -> bool:
    """Make `folder` if need be; tell whether nobody else can have written there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return mine and not found.st_mode & 0o022


def _write(path: Path, text: str, name: str) -> None:
    """Write the generated module in one step, so that nobody ever reads half of it."""
    from cffi import recompiler

    builder = _parsed(text)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        # what `emit_python_code` calls, without its line on standard output
        cast("Any", recompiler).make_py_source(builder, name, temporary)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _parsed(text: str) -> Any:
    # cffi brings a C parser along, 8 MB that no worker needs once the module is there
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(text)
    return ffi


def _load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ffi


def _cached(folder: Path, text: str) -> Any:
    name = module_name(text)
    path = folder / f"{name}.py"
    if not path.exists():
        _write(path, text, name)
    try:
        return _load(path, name)
    except (SyntaxError, ImportError, AttributeError, ValueError):
        # damaged on disk (a full disk, a crash of the machine): make it anew, once
        _write(path, text, name)
        return _load(path, name)


def load(cache: Path | None) -> tuple[Any, Any]:
    """Return cffi's `ffi` and `lib` for the installed engine.

    `cache` is the folder for the generated module; None, or one that others can write, means that
    the declarations are parsed now. Raises EngineMissing when the package or library is not there.
    """
    package = package_folder()
    text = declarations(package)
    ffi = _cached(cache, text) if cache is not None and _private(cache) else _parsed(text)
    try:
        return ffi, ffi.dlopen(str(package / "_lib" / LIBRARY))
    except OSError as error:
        raise EngineMissing(f"The terminal engine does not load: {error}.", WITHOUT) from error
