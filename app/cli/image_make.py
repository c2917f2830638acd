"""`cloche image build` and `cloche image import`: bring an image into the store."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from app.cli.ended import as_ctrl_c
from app.cli.progress import Bar
from app.client.launch import launcher
from app.errors import EXIT_DONE
from app.paths import Paths, private_folder
from app.services.recipes import find_recipe, load_recipes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Generator

    from app.cli.output import Output
    from vm.image import ImageSet
    from vm.image.imports import Wish
    from vm.image.store import ImageRecord

SHORT: Final = 12
START_S: Final = 30.0
"""Seconds until a process must have gone into the background."""


def build(arguments: argparse.Namespace, output: Output) -> int:
    """Build the image of a recipe, or give an imported one today's toolkit."""
    from vm.image.build import build_image, refresh_image

    paths = _store()
    name = arguments.name
    if not arguments.force and _is_imported(paths, name):
        with _bar() as show:
            return _told(output, refresh_image(paths.store, name, show))
    recipe = find_recipe(paths.config, name)
    _make(paths)
    with _bar() as show:
        if recipe.install:
            from app.services.installing import make

            return _told(output, make(paths, recipe, show, force=arguments.force))
        built = build_image(paths.store, recipe=recipe, progress=show, force=arguments.force)
    return _told(output, built)


def _is_imported(paths: Paths, name: str) -> bool:
    record = _record(paths, name)
    return record is not None and record.imported is not None


def _record(paths: Paths, name: str) -> ImageRecord | None:
    from vm.image import store
    from vm.image.build import older_record

    return older_record(store.image_folder(paths.store, name))


def bring(arguments: argparse.Namespace, output: Output) -> int:
    """Import an image by the rule of `--pull`."""
    from vm.image import imports
    from vm.image.oci.skopeo import Way

    paths = _store()
    wanted = imports.wish(
        arguments.reference,
        arguments.name,
        way=Way(arguments.plain_http),
        force=arguments.force,
        recipes=load_recipes(paths.config),
    )
    there = imports.present(paths.store, wanted) is not None
    if arguments.pull == "never" or (there and arguments.pull == "if-not-present"):
        return _told(output, imports.if_present(paths.store, wanted))
    if there and arguments.pull == "background":
        _later(paths, wanted, output)
        return _told(output, imports.if_present(paths.store, wanted))
    _make(paths)
    with _bar() as show:
        found = imports.import_image(paths.store, wanted, show)
    return _told(output, found)


def _later(paths: Paths, wanted: Wish, output: Output) -> None:
    """Import it in a process of its own, whose words go to a file."""
    words = ["image", "import", str(wanted.reference), "--name", wanted.name, "--pull", "always"]
    words += ["--plain-http"] * wanted.way.plain_http + ["--force"] * wanted.force
    log = paths.cache / f"import-{wanted.name}.log"
    paths.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("wb") as said:
        subprocess.run(
            ["setsid", "--fork", sys.executable, "-P", str(launcher()), *words],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            timeout=START_S,
            check=True,
        )
    output.note(f"looking for a newer {wanted.name} in the background; its words: {log}")


def _store() -> Paths:
    return Paths.from_environment()


def _make(paths: Paths) -> None:
    private_folder(paths.data)
    private_folder(paths.store)


@contextmanager
def _bar() -> Generator[Callable[[str, float], None]]:
    bar = Bar(shown=sys.stderr.isatty())
    with as_ctrl_c():
        try:
            yield bar.show
        finally:
            bar.end()  # what is said next, an error too, begins its own line


def _told(output: Output, found: ImageSet) -> int:
    record = _record(Paths.from_environment(), found.name)
    imported = record.imported if record else None
    fields: dict[str, Any] = {
        "image": {name: str(value) for name, value in asdict(found).items() if name != "env"}
    }
    if imported is not None:
        from msgspec import to_builtins

        fields["imported"] = to_builtins(imported)

    def said() -> None:
        output.line(f"image {found.name} {found.digest[:SHORT]}")
        for note in imported.notes if imported else ():
            output.line(f"  {note}")

    output.result(fields, said)
    return EXIT_DONE
