"""Every file that runs by side effect or in a build is in its tier, however its name is spelled."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.names import plain_name
from snapshot.risk import risk_of, risk_of_name
from snapshot.risk_names import FOLDERS, NAMES, PATTERNS

HELD = """
    .husky/pre-commit packages/web/.husky/post-merge .githooks/commit-msg .lefthook/pre-push/x.sh
    .pre-commit-config.yaml sub/deep/.pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml
    lefthook.toml .lefthook.json lefthook-local.yml .overcommit.yml .huskyrc.json .lintstagedrc
    lint-staged.config.mjs commitlint.config.js .simple-git-hooks.cjs .git/hooks/post-checkout
    .git/config .git/info/attributes .git/rebase-merge/git-rebase-todo .git/modules/x/hooks/update
    vendor/repo.git/hooks/update nested/.git/hooks/pre-commit .hg/hgrc .gitattributes
    deep/.gitattributes .gitmodules .gitconfig .lfsconfig CLAUDE.md docs/CLAUDE.md CLAUDE.local.md
    AGENTS.md GEMINI.md QWEN.md .cursorrules .windsurfrules .clinerules .goosehints .roomodes
    .mcp.json .claude/settings.json .claude/hooks/stop.sh .claude/commands/x.md
    .claude/skills/x/run.py .cursor/rules/a.mdc .cursor/mcp.json rules/x.mdc .codex/config.toml
    .gemini/settings.json .opencode/plugin/x.ts opencode.json .kiro/hooks/x.json
    .junie/guidelines.md .windsurf/rules/x.md .roo/mcp.json .github/copilot-instructions.md
    .github/instructions/py.instructions.md .github/prompts/x.prompt.md .github/agents/x.md
    .vscode/tasks.json .vscode/launch.json .vscode/settings.json .vscode/extensions.json
    .idea/workspace.xml .idea/runConfigurations/x.xml .run/x.run.xml all.code-workspace x.iml
    .zed/tasks.json .fleet/run.json .vimrc .exrc .nvim.lua .dir-locals.el .vim/ftplugin/x.vim
    .devcontainer.json .devcontainer/devcontainer.json .devcontainer/Dockerfile eslint.config.js
    .eslintrc.cjs .eslintrc.json .prettierrc.yml .rubocop.yml .pylintrc mypy.ini .envrc sub/.envrc
    .env .env.local .direnv/bin/x .tool-versions mise.toml .mise.local.toml mise.dev.toml flake.nix
    shell.nix default.nix devenv.nix devbox.json .bashrc .zshenv .profile .ripgreprc .gdbinit
    .lldbinit .pdbrc .Rprofile .irbrc .iex.exs setup.py setup.cfg conftest.py tests/conftest.py
    sitecustomize.py usercustomize.py x.pth pytest.ini pyvenv.cfg .venv/bin/python
    node_modules/.bin/tsc .npmrc .yarnrc.yml .pnpmfile.cjs .pnp.cjs .yarn/releases/yarn.cjs
    bunfig.toml binding.gyp pip.conf uv.toml nuget.config .cargo/config.toml .mvn/extensions.xml
    build.rs crates/x/build.rs .cloche.yaml .clocheignore
"""

WARNED = """
    .github/workflows/ci.yml .github/actions/x/action.yml sub/.github/workflows/x.yaml action.yml
    .gitlab-ci.yml .gitlab/ci/x.yml ci.gitlab-ci.yml .circleci/config.yml .buildkite/pipeline.yml
    .woodpecker.yml .woodpecker/x.yml .teamcity/settings.kts .drone.yml .travis.yml Jenkinsfile
    ci/release.jenkinsfile Jenkinsfile.release azure-pipelines.yml azure-pipelines-release.yml
    bitbucket-pipelines.yml appveyor.yml .cirrus.yml cloudbuild.yaml buildspec.yml .tekton/x.yaml
    .forgejo/workflows/x.yml .gitea/workflows/x.yml .semaphore/semaphore.yml netlify.toml
    vercel.json .readthedocs.yaml .builds/x.yml Makefile lib/makefile GNUmakefile rules.mk
    Makefile.am justfile Justfile .justfile Taskfile.yml CMakeLists.txt x.cmake CMakePresets.json
    meson.build SConstruct configure.ac Rakefile build.gradle app/build.gradle.kts x.gradle gradlew
    gradle/wrapper/gradle-wrapper.jar pom.xml build.xml build.sbt BUILD BUILD.bazel WORKSPACE
    MODULE.bazel defs.bzl dune mix.exs Package.swift X.csproj Directory.Build.props
    x.xcodeproj/project.pbxproj noxfile.py tox.ini tasks.py vite.config.ts jest.config.js
    webpack.config.cjs Gruntfile.js turbo.json deno.json buildSrc/src/x.kt Cargo.toml go.mod Gemfile
    Podfile Pipfile environment.yml Dockerfile prod.Dockerfile Dockerfile.dev Containerfile
    docker-compose.yml compose.yaml compose.override.yml docker-compose.prod.yml Vagrantfile
    Tiltfile
"""

HARMLESS = """
    src/main.py README.md docs/makefiles.md .env.example a.config github/x workflows/ci.yml
    .gitignore dockerfiles/readme.txt src/setup/x.py src/claude.py vscode/tasks.json husky/x
    git/hooks/x agents/x.py src/build_rs.rs package.json.md cursor/rules.md a/idea/x package.py
    hooks.py mygit/x envrc .github/ISSUE_TEMPLATE.md .github/CODEOWNERS setup.py.txt x~1.py
    node_modules.md tests/test_conftest.py prettier.md
"""


def tier(path: str) -> str:
    """Return the tier of a text file that was edited."""
    edited = risk_of(path.encode(), mode="100644", old_mode="100644", agent=b"x\n", base=b"y\n")
    return edited.tier


def moved_away(path: str) -> str:
    """Return the tier of a file that became one of a harmless name."""
    mode, text = "100644", b"x\n"
    old_path = path.encode()
    return risk_of(
        b"docs/x.md", mode=mode, old_mode=mode, agent=text, base=text, old_path=old_path
    ).tier


@pytest.mark.parametrize("path", HELD.split())
def test_what_runs_by_itself_is_held(path: str) -> None:
    assert tier(path) == "held"
    assert risk_of_name(path.encode()).reason
    assert risk_of(path.encode(), mode="", old_mode="100644", agent=None).tier == "held"
    assert moved_away(path) == "held"


@pytest.mark.parametrize("path", WARNED.split())
def test_what_builds_run_is_warned_of(path: str) -> None:
    assert tier(path) == "warned"
    assert risk_of_name(path.encode()).reason
    assert moved_away(path) == "warned"


@pytest.mark.parametrize("path", HARMLESS.split())
def test_what_only_resembles_it_is_not(path: str) -> None:
    assert tier(path) == ""
    assert moved_away(path) == ""


def test_no_name_of_the_tables_hides_behind_another_rule() -> None:
    for name, risk in NAMES.items():
        assert plain_name(name) == name
        assert risk_of_name(name.encode()).tier in {risk.tier, "held"}, name
    for folder, risk in FOLDERS.items():
        assert "/".join(plain_name(part) for part in folder.split("/")) == folder
        assert risk_of_name(f"{folder}/x".encode()).tier in {risk.tier, "held"}, folder


SPELLED = sorted([name for name in NAMES if name.isascii()])
IGNORED = st.sampled_from("\u200c\u200d\u200e\u200f\u202a\u202e\u206a\u206f\ufeff")


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """Return a name of the tables and another that some file system takes for the same."""
    name = draw(st.sampled_from(SPELLED))
    letters = [draw(st.sampled_from([c, c.upper(), c.swapcase()])) for c in name]
    if draw(st.booleans()):
        letters = [_wide(c) if draw(st.booleans()) else c for c in letters]
    for _ in range(draw(st.integers(0, 3))):
        letters.insert(draw(st.integers(0, len(letters))), draw(IGNORED))
    tail = draw(st.sampled_from(["", ".", " ", ". .", ":$DATA", "::$INDEX_ALLOCATION"]))
    return name, "".join(letters) + tail


def _wide(letter: str) -> str:
    """Return the full-width form of a letter, which compatibility forms fold away."""
    return chr(ord(letter) + 0xFEE0) if letter.isalnum() else letter


@given(spellings(), st.sampled_from(["", "a/", "a/b/c/", "x\\"]))
def test_a_name_is_found_in_every_spelling(pair: tuple[str, str], folder: str) -> None:
    name, spelled = pair
    assert risk_of_name((folder + spelled).encode()) == risk_of_name((folder + name).encode())


@given(st.sampled_from(sorted(FOLDERS)), st.data())
def test_a_folder_is_found_in_every_spelling_and_depth(folder: str, data: st.DataObject) -> None:
    spelled = "".join(data.draw(st.sampled_from([c, c.upper()])) for c in folder)
    above = data.draw(st.sampled_from(["", "a/", "a/b/"]))
    below = data.draw(st.sampled_from(["x", "y/x", "y/z/x"]))
    found = risk_of_name(f"{above}{spelled}/{below}".encode())
    assert found.tier == risk_of_name(f"{folder}/x".encode()).tier


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("HUSKY~1/pre-commit", ".husky/pre-commit"),
        ("GIT~1/hooks/x", ".git/hooks/x"),
        ("GITHUB~1/WORKFL~2/ci.yml", ".github/workflows/ci.yml"),
        ("VSCODE~1/tasks.json", ".vscode/tasks.json"),
        ("CLAUDE~1/settings.json", ".claude/settings.json"),
        ("NPMRC~1", ".npmrc"),
        ("ENVRC~3", ".envrc"),
        ("GITATT~1", ".gitattributes"),
        ("PRE-CO~1.YAM", ".pre-commit-config.yaml"),
        ("PYTEST~1.INI", "pytest.ini"),
        ("LEFTH~12.YML", ".lefthook.yml"),
        ("SITECU~1.PY", "sitecustomize.py"),
        ("CMAKEL~1.TXT", "CMakeLists.txt"),
    ],
)
def test_a_short_name_of_windows_is_the_long_one(short: str, long: str) -> None:
    assert tier(long) in ("warned", "held")
    assert tier(short) == tier(long)


@given(st.text(min_size=1, max_size=40))
def test_every_path_has_one_answer(path: str) -> None:
    found = risk_of_name(path.encode("utf-8", "surrogateescape" if path.isascii() else "replace"))
    assert bool(found.tier) == bool(found.reason)
    composed = unicodedata.normalize("NFC", path).encode("utf-8", "replace")
    apart = unicodedata.normalize("NFD", path).encode("utf-8", "replace")
    assert risk_of_name(composed) == risk_of_name(apart)


@pytest.mark.parametrize(
    ("mode", "old_mode", "agent", "word"),
    [
        ("100755", "100644", b"x\n", "executable"),
        ("100755", "", b"x\n", "executable"),
        ("100755", "120000", b"x\n", "executable"),
        ("100755", "100755", b"x\n", ""),
        ("100644", "100755", b"x\n", ""),
        ("100644", "", b"\0", "binary"),
        ("100644", "100644", b"\0", "binary"),
        ("120000", "", b"/etc/passwd", "absolute"),
        ("120000", "120000", b"../../x", "out of the workspace"),
        ("120000", "", b".git/hooks", ".git"),
        ("120000", "", b"a/../GIT~1/hooks", ".git"),
        ("120000", "", b"main.py", ""),
        ("120000", "100644", b"main.py", "in place of a file"),
        ("100644", "", "a\u202eb".encode(), "invisible"),
        ("100644", "", "\ufeffa".encode(), ""),
    ],
)
def test_what_an_entry_is_counts_too(mode: str, old_mode: str, agent: bytes, word: str) -> None:
    found = risk_of(b"src/x", mode=mode, old_mode=old_mode, agent=agent)
    assert word in found.reason
    assert found.tier == ("held" if word else "")


def test_the_strictest_reason_counts() -> None:
    found = risk_of(b"Makefile", mode="100755", old_mode="100644", agent=b"x\n")
    assert found == ("held", "becomes executable")
    found = risk_of(b".husky/x", mode="100755", old_mode="", agent=b"x\n")
    assert found == ("held", "runs as a hook")


@pytest.mark.parametrize("head", [b"ref: refs/heads/main\n", b"a" * 40 + b"\n"])
def test_a_head_makes_a_folder_a_repository(head: bytes) -> None:
    found = risk_of(b"docs/HEAD", mode="100644", old_mode="", agent=head)
    assert found.tier == "held"
    assert risk_of(b"docs/HEAD", mode="100644", old_mode="", agent=b"A heading\n").tier == ""


def test_the_tables_hold_no_pattern_that_can_be_made_slow() -> None:
    hostile = (b"." * 120 + b"a-" * 60 + b"~1" + b"rc." * 20)[:255]
    assert risk_of_name(hostile).tier == ""
    assert len(PATTERNS) > 10
