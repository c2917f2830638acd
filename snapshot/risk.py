"""Files that can run code, or change what runs, without anybody starting them on purpose.

"Accept all safe" leaves them out and says why in one phrase. The lists name what widespread tools
read from a working tree; a file that is not on them is not thereby harmless.
"""

from __future__ import annotations

import re
from typing import Final

from .lines import is_binary
from .names import NameRefused, check_link
from .safe_text import decode, is_suspicious

_HOOK = "runs as a hook"
_CI = "changes what continuous integration runs"
_BUILD = "runs when the project is built"
_PACKAGE = "can hold scripts that run on install"
_PYTHON = "is imported by Python tools without being asked for"
_SHELL = "is read by a shell or its helpers on entering the folder"
_EDITOR = "can make an editor run something"
_GIT = "changes how git treats files"
_CONTAINER = "changes how containers are built or run"
_AGENT = "instructs coding agents or gives them tools"
_CLOCHE = "changes what Cloche does here"

_NAMES: Final[dict[str, str]] = {
    **dict.fromkeys(
        (".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthook.yml", "lefthook.yaml",
         ".lefthook.yml", ".huskyrc", ".overcommit.yml"),
        _HOOK,
    ),
    **dict.fromkeys(
        (".gitlab-ci.yml", ".travis.yml", "jenkinsfile", "azure-pipelines.yml", ".drone.yml",
         "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".woodpecker.yml",
         ".cirrus.yml", "cloudbuild.yaml", "buildspec.yml"),
        _CI,
    ),
    **dict.fromkeys(
        ("makefile", "gnumakefile", "bsdmakefile", "justfile", ".justfile", "taskfile.yml",
         "taskfile.yaml", "cmakelists.txt", "cmakepresets.json", "meson.build", "sconstruct",
         "sconscript", "wscript", "configure", "configure.ac", "build.rs", "rakefile", "gruntfile",
         "gruntfile.js", "gulpfile.js", "build.gradle", "build.gradle.kts", "settings.gradle",
         "settings.gradle.kts", "gradlew", "gradlew.bat", "gradle-wrapper.properties",
         "gradle-wrapper.jar", "mvnw", "pom.xml", "build.xml", "build.sbt", "build.zig", "build",
         "build.bazel", "workspace", "workspace.bazel", "module.bazel", ".bazelrc", "dune",
         "mix.exs", "package.swift", "directory.build.props", "directory.build.targets"),
        _BUILD,
    ),
    **dict.fromkeys(
        ("package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "composer.json",
         "gemfile", "podfile", "binding.gyp", "cargo.toml", "pyproject.toml", "setup.py",
         "setup.cfg", "pip.conf", "uv.toml"),
        _PACKAGE,
    ),
    **dict.fromkeys(
        ("conftest.py", "sitecustomize.py", "usercustomize.py", "noxfile.py", "tox.ini",
         "pytest.ini", ".coveragerc", "tasks.py", "fabfile.py", "manage.py", ".pythonrc"),
        _PYTHON,
    ),
    **dict.fromkeys(
        (".envrc", ".env", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv",
         ".tool-versions", "mise.toml", ".mise.toml", ".autoenv", "flake.nix", "shell.nix",
         "default.nix", "devbox.json", ".node-version"),
        _SHELL,
    ),
    **dict.fromkeys(
        (".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".lvimrc"),
        _EDITOR,
    ),
    **dict.fromkeys((".gitattributes", ".gitmodules", ".gitconfig", ".lfsconfig"), _GIT),
    **dict.fromkeys(
        ("dockerfile", "containerfile", "vagrantfile", "procfile", "compose.yml", "compose.yaml",
         "docker-compose.yml", "docker-compose.yaml", "tiltfile", "skaffold.yaml"),
        _CONTAINER,
    ),
    **dict.fromkeys(
        ("claude.md", "agents.md", "gemini.md", ".cursorrules", ".mcp.json", ".windsurfrules",
         "copilot-instructions.md", ".aider.conf.yml"),
        _AGENT,
    ),
    **dict.fromkeys((".cloche.yaml", ".clocheignore", ".broodboxignore"), _CLOCHE),
}  # fmt: skip

_FOLDERS: Final[dict[str, str]] = {
    ".husky": _HOOK,
    ".githooks": _HOOK,
    "githooks": _HOOK,
    ".github/workflows": _CI,
    ".github/actions": _CI,
    ".gitlab": _CI,
    ".circleci": _CI,
    ".buildkite": _CI,
    ".woodpecker": _CI,
    ".teamcity": _CI,
    ".cargo": _BUILD,
    ".mvn": _BUILD,
    "buildsrc": _BUILD,
    ".yarn": _PACKAGE,
    ".direnv": _SHELL,
    ".vscode": _EDITOR,
    ".idea": _EDITOR,
    ".zed": _EDITOR,
    ".devcontainer": _CONTAINER,
    ".claude": _AGENT,
    ".cursor": _AGENT,
    ".codex": _AGENT,
    ".gemini": _AGENT,
    ".opencode": _AGENT,
}

_PATTERNS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\.pth$"), _PYTHON),
    (re.compile(r"\.(mk|cmake|gemspec|podspec|bzl|gyp|gypi|csproj|vcxproj|targets)$"), _BUILD),
    (re.compile(r"(^|\.)(docker|container)file(\.|$)"), _CONTAINER),
    (re.compile(r"\.(config|setup|rc)\.(js|cjs|mjs|ts|cts|mts)$"), _BUILD),
    (re.compile(r"^\.[a-z-]+rc\.(js|cjs|mjs|ts)$"), _BUILD),
    (re.compile(r"\.(code-workspace|sublime-project)$"), _EDITOR),
    (re.compile(r"^\.env\.(?!example$|sample$|template$|dist$)"), _SHELL),
    (re.compile(r"^(docker-)?compose\..*ya?ml$"), _CONTAINER),
)

_EXECUTABLE: Final = "100755"
_LINK: Final = "120000"
_FILE_TYPES: Final = ("100644", "100755")


def risk_of(
    path: bytes, *, mode: str, old_mode: str, agent: bytes | None, base: bytes | None = None
) -> str:
    """Return one phrase on why a change can execute by side effect, else "".

    Args:
        path: the new path, relative to the workspace.
        mode: git tree mode of the agent's side ("" when it is gone).
        old_mode: git tree mode of the base ("" when it is new).
        agent: the agent's content; a link's target.
        base: the base's content.

    """
    found = risk_of_name(path)
    if found or not mode:
        return found
    return _risk_of_entry(path, mode, old_mode, agent or b"", base)


def risk_of_name(path: bytes) -> str:
    """Return the phrase for a path alone, else ""."""
    text = decode(path).casefold()
    *folders, name = text.split("/")
    if any(folder.endswith(".git") for folder in folders):
        return "lies in a bare repository, whose hooks and configuration git obeys"
    for depth in range(len(folders)):
        for length in (1, 2):
            phrase = _FOLDERS.get("/".join(folders[depth : depth + length]))
            if phrase:
                return phrase
    if name in _NAMES:
        return _NAMES[name]
    return next((phrase for pattern, phrase in _PATTERNS if pattern.search(name)), "")


def _risk_of_entry(path: bytes, mode: str, old_mode: str, agent: bytes, base: bytes | None) -> str:
    """Return the phrase for what the entry is now."""
    if mode == _LINK:
        try:
            check_link(path, agent)
        except NameRefused as refused:
            return f"is a link, and {refused}"
        return "is a link in place of a file" if old_mode in _FILE_TYPES else ""
    if mode == _EXECUTABLE and old_mode != _EXECUTABLE:
        return "becomes executable"
    if mode in _FILE_TYPES and is_binary(agent):
        return "is binary and cannot be read in review"
    if _hides_text(agent, base) or is_suspicious(decode(path)):
        return "holds invisible or reordering characters"
    return ""


def _hides_text(agent: bytes, base: bytes | None) -> bool:
    """Return whether the agent brought in characters that hide or reorder text."""
    if agent.isascii():
        return False
    body = decode(agent).removeprefix("\ufeff")
    if not is_suspicious(body):
        return False
    known = set(decode(base or b"").split("\n"))
    return any(is_suspicious(line) and line not in known for line in body.split("\n"))
