"""Images whose recipe is a line of shell: it runs in a machine, whose `/programs` the image gets.

Nothing of it runs on this host, and the machine reaches what every sandbox does: the registries
that this host's own tools are configured for, and the profile's hosts.
"""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Final

from app.agents import npm_fetch_script
from app.client import checks
from app.client.copying import CopyLimits
from app.client.sandboxes import SandboxSpec
from app.errors import AppError
from app.files import write_atomic
from app.paths import private_folder
from app.programs import Program
from app.services.install_output import InstallOutput
from app.services.owned_folders import OwnedFolder, sweep
from app.services.recipes import NPM_FETCH
from app.services.sandbox import CopyFailed, CopyPair, SandboxRequest, Streams, run_sandbox
from vm.image import added, build, store
from vm.image.recipes import RECIPES
from vm.install import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths
    from app.services.sandbox import SandboxReport
    from vm.image.progress import Progress
    from vm.image.recipes import Recipe
    from vm.image.store import ImageSet

TIMEOUT_S: Final = 3600.0
"""For the machine's start and the installation; an emulated processor needs minutes."""

SCRATCH: Final = ".installing-"
"""Beginning of the name of a build's own folder in the store."""

ARCHIVE: Final = "/workspace/programs.tar"
SCRIPT: Final = (
    f"umask 022; mkdir {PROGRAMS} && cd {PROGRAMS} && ({{command}}) && "
    f"echo packing {PROGRAMS} && exec tar -C / -cf {ARCHIVE} {PROGRAMS.strip('/')}"
)

VARIABLES: Final = {
    "NPM_CONFIG_LOGLEVEL": "http",
    "NPM_CONFIG_AUDIT": "false",
    "NPM_CONFIG_FUND": "false",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "PIP_NO_INPUT": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}
"""Installers say what they fetch, ask nobody, and do nothing that only a later call would use."""

_BEGUN, _INSTALLING = 0.3, 0.35
"""How far it is when the machine is started, and when the line of shell begins."""


def make(paths: Paths, recipe: Recipe, progress: Progress, *, force: bool) -> ImageSet:
    """Return the image of a recipe with `install`, made where it is not there as it would be now.

    Not for an event loop: all but the machine's work blocks, and ctrl+c shall end that as well.
    Raises AppError `failed` with what the installation said, and what images and machines raise.
    """
    folder = store.image_folder(paths.store, recipe.name)
    build.refuse_imported(folder)
    older = None if force else build.older_record(folder)
    if older is not None and older.base_source == build.base_source(recipe):
        return build.refresh_image(paths.store, recipe.name, progress)
    checks.check_programs()  # what the machine needs, before the image below takes its minutes
    below = build.build_image(paths.store, recipe=RECIPES[recipe.below], progress=progress)
    progress("starting a machine", _BEGUN)
    sweep(SCRATCH, paths.store)
    scratch = OwnedFolder(SCRATCH, paths.store)
    try:
        archive = scratch.path / "programs.tar"
        asyncio.run(_install(paths, recipe, archive, progress))
        return added.add(paths.store, recipe, below, archive, progress)
    finally:
        scratch.close()


async def _install(paths: Paths, recipe: Recipe, archive: Path, progress: Progress) -> None:
    argv = ("sh", "-c", SCRIPT.format(command=recipe.command))
    limits = CopyLimits(entries=1, size=added.MAX_ARCHIVE)
    request = SandboxRequest(
        Program(argv, root=True, env={**VARIABLES, NPM_FETCH: npm_fetch_script()}),
        SandboxSpec(argv, image=recipe.below),
        timeout_s=TIMEOUT_S,
        copy_out=(CopyPair(ARCHIVE.encode(), archive, limits=limits),),
    )
    said = InstallOutput()

    def begins() -> None:
        progress("installing", _INSTALLING)

    telling = asyncio.create_task(said.tell(progress, _INSTALLING))
    try:
        report = await run_sandbox(paths, request, lambda _: Streams(said.hear, said.hear, begins))
    finally:
        telling.cancel()
    if report.exit_code != 0:
        log = await asyncio.to_thread(_keep, paths, recipe, said)
        raise AppError("failed", _reason(recipe, report, said), _hint(report, log))
    for failed in report.copies_failed:
        raise _not_taken(recipe, failed)


def _not_taken(recipe: Recipe, failed: CopyFailed) -> AppError:
    if failed.code != "too-large":
        return AppError(failed.code, failed.message, failed.hint)
    text = f"What installing {recipe.name} made is too large: {failed.message}"
    return AppError("too-large", text, "Have `install` remove what is only needed to build")


def _keep(paths: Paths, recipe: Recipe, said: InstallOutput) -> Path:
    """Keep what a failed installation said; the file."""
    private_folder(paths.cache)
    log = paths.cache / f"install-{recipe.name}.log"
    write_atomic(log, said.text.encode())
    return log


def _reason(recipe: Recipe, report: SandboxReport, said: InstallOutput) -> str:
    if not report.started:
        return f"The machine for {recipe.name} did not start in time. {report.message}".rstrip()
    how = "ran out of time" if report.timed_out else f"ended with status {report.status}"
    return f"Installing {recipe.name} {how}: {said.reason()}"


def _hint(report: SandboxReport, log: Path) -> str:
    if not report.started:
        return "Look: cloche doctor"
    refused = ", ".join(sorted({one.host for one in report.refused}))
    if refused:
        return f"It was refused: {refused}. Allow a host: cloche egress allow HOST --always"
    return f"Read what it said: less {shlex.quote(str(log))}"
