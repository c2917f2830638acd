"""Every error says what to do next."""

from __future__ import annotations

import importlib
import pkgutil

import vm
from vm.errors import BootFailed, LinkLost, VMError


def subclasses(kind: type[VMError]) -> set[type[VMError]]:
    below = {item for one in kind.__subclasses__() for item in subclasses(one)}
    return {kind, *below}


def test_every_class_of_errors_knows_a_next_step() -> None:
    for module in pkgutil.walk_packages(vm.__path__, "vm."):
        importlib.import_module(module.name)
    found = subclasses(VMError)
    assert len(found) > 15
    for kind in found:
        assert ": " in kind.way_out, kind


def test_the_hint_of_whoever_raises_goes_first() -> None:
    assert VMError("It broke.", "Mend it.").hint == "Mend it."
    assert LinkLost("It broke.").hint == LinkLost.way_out
    assert BootFailed("It broke.", console="words").hint == BootFailed.way_out
