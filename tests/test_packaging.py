"""The wheel holds what it should and adds two names; a workspace runs nothing of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import cloche
from vm.image import elf, recipe

CHECKOUT = Path(cloche.__file__).resolve().parent
SITE = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
TRAP = "import os\nos.write(2, b'TRAPPED ' + __name__.encode() + b'\\n')\nos._exit(99)\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))[0]


def build_wheel(
    folder: Path, kind: str = "standard", path: str = os.environ["PATH"]
) -> tuple[Path, str]:
    """Build a wheel with `path` as search path; return it and what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", f"wheel:{kind}", "-d", str(folder)],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": path},
    )
    (built,) = folder.glob("*.whl")
    return built, done.stdout + done.stderr


def prebuilt(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if "/prebuilt/init-" in name]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel unpacked and our dependencies on its path; returns its bin."""
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, with_pip=False, symlinks=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / SITE)
    (root / SITE / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    script = root / "bin" / "cloche"
    script.write_text(
        f"#!{root}/bin/python\nimport sys\nfrom cloche import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    return root / "bin"


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A workspace whose files have the names of our packages and of modules that we import."""
    workspace = tmp_path / "workspace"
    for package in ("app", "vm", "snapshot", "widgets", "themes", "yaml", "asyncssh"):
        (workspace / package).mkdir(parents=True)
        (workspace / package / "__init__.py").write_text(TRAP)
    for module in (
        "yaml",
        "sitecustomize",
        "usercustomize",
        "json",
        "argparse",
        "msgspec",
        "cloche",
    ):
        (workspace / f"{module}.py").write_text(TRAP)
    return workspace


def run(argv: list[str], cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_wheel_adds_two_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    assert names == {"cloche.py", "_cloche", f"cloche-{cloche.__version__}.dist-info"}


def test_wheel_carries_guest_sources_and_styles(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.startswith("_cloche/vm/guest/") and name.endswith(".c") for name in names)
    assert any(name.endswith(".tcss") for name in names)


def test_wheel_carries_the_compiled_guest(wheel: Path) -> None:
    (name,) = prebuilt(wheel)
    assert name == f"_cloche/vm/guest/prebuilt/{recipe.program_name()}"
    with zipfile.ZipFile(wheel) as archive:
        program = archive.read(name)
        assert elf.interpreter(program) == ""  # static
        assert elf.needed(program) == []


def test_an_installed_wheel_needs_no_compiler(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    nothing = tmp_path / "bin"
    nothing.mkdir()
    environment = {"PATH": str(nothing), "HOME": str(home), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([str(installed / "cloche"), "doctor", "--json"], env=environment,
                          capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    findings = {one["id"]: one for one in json.loads(done.stdout)["findings"]}
    assert findings["guest-init"]["status"] == "ok"
    assert findings["qemu"]["status"] == "fail"


def test_a_wheel_is_built_without_musl_and_says_what_it_lacks(tmp_path: Path) -> None:
    built, said = build_wheel(tmp_path, path="/nowhere")
    assert prebuilt(built) == []
    assert "no compiled guest program: musl-gcc and as not found" in said


def test_an_editable_wheel_compiles_nothing(tmp_path: Path) -> None:
    built, _ = build_wheel(tmp_path, "editable")
    assert prebuilt(built) == []


def test_the_recipe_needs_the_standard_library_only() -> None:
    """The wheel's build hook loads it where none of our dependencies is."""
    argv = [sys.executable, "-I", "-S", str(CHECKOUT / "vm" / "image" / "recipe.py")]
    subprocess.run(argv, check=True, timeout=60)


def test_console_script_of_a_wheel_runs_nothing_of_the_workspace(
    installed: Path, trapped: Path, tmp_path: Path
) -> None:
    done = run([str(installed / "cloche"), "ps", "--json"], trapped, tmp_path)
    assert "TRAPPED" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert done.stdout == '{"ok": true, "sessions": []}\n'


def test_launcher_of_a_checkout_runs_nothing_of_the_workspace(
    trapped: Path, tmp_path: Path
) -> None:
    done = run([sys.executable, str(CHECKOUT / "cloche.py"), "ps", "--json"], trapped, tmp_path)
    assert "TRAPPED" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_children_run_nothing_of_the_workspace(trapped: Path, tmp_path: Path) -> None:
    """A keeper's command line, started from inside the workspace, fails for its own reason only."""
    argv = [sys.executable, "-P", str(CHECKOUT / "cloche.py"), "_role", "keeper", str(tmp_path)]
    done = run(argv, trapped, tmp_path)
    assert "TRAPPED" not in done.stderr
    assert done.returncode not in (0, 99)


def test_version_answers_without_our_packages(tmp_path: Path) -> None:
    done = run([sys.executable, str(CHECKOUT / "cloche.py"), "--version"], tmp_path, tmp_path)
    assert done.stdout == f"cloche {cloche.__version__}\n"
