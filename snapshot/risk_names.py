"""The names by which widespread tools find what they run, read or obey, as data.

Two tiers: `held` is what runs, or changes what runs, without anybody starting it on purpose, and is
never accepted along with others; `warned` is what builds and continuous integration run, and is
accepted with a warning. A file that is on no list is not thereby harmless.

All names are in the form that `names.plain_name` gives. A folder counts at any depth with all that
it holds; two folders in a row are written with a slash.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

Tier = Literal["", "warned", "held"]
"""How far a change can be accepted together with others; later is stricter."""

TIERS: Final[tuple[Tier, ...]] = ("", "warned", "held")


class Risk(NamedTuple):
    """What a change can do besides what its lines say."""

    tier: Tier
    reason: str
    """One phrase about the file, as in "runs as a hook"; empty where there is no risk."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text that is a list."""
    return frozenset(text.split())


NO_RISK: Final = Risk("", "")

HOOK: Final = Risk("held", "runs as a hook")
PACKAGE: Final = Risk("held", "can run or redirect something on install")
PYTHON: Final = Risk("held", "is run by Python tools without being asked for")
SHELL: Final = Risk("held", "is read by a shell or its helpers on entering the folder")
EDITOR: Final = Risk("held", "can make an editor run something")
CHECKER: Final = Risk("held", "can name code that editors load to check or format files")
DEBUGGER: Final = Risk("held", "is run by a debugger or interpreter started in the folder")
GIT: Final = Risk("held", "changes how git treats files")
REPOSITORY: Final = Risk("held", "lies in a repository, whose hooks and settings are obeyed")
AGENT: Final = Risk("held", "instructs coding agents or gives them tools")
CLOCHE: Final = Risk("held", "changes what Cloche does here")
MODULES: Final = Risk("held", "lies among programs that are found there by name")
CI: Final = Risk("warned", "changes what continuous integration runs")
BUILD: Final = Risk("warned", "runs when the project is built or tested")
INSTALLED: Final = Risk("warned", "changes what is installed")
CONTAINER: Final = Risk("warned", "changes how containers are built or run")

_BY_NAME: Final[dict[Risk, str]] = {
    HOOK: """
        .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .overcommit.yml
        lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.yml .lefthook.yaml
        .lefthook.toml .lefthook.json lefthook-local.yml lefthook-local.yaml .lefthook-local.yml
        captainhook.json grumphp.yml simple-git-hooks.json .simple-git-hooks.json
    """,
    PACKAGE: """
        .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs pnpm-workspace.yaml .pnp.cjs .pnp.js
        .pnp.loader.mjs bunfig.toml binding.gyp setup.py setup.cfg pip.conf pip.ini uv.toml .condarc
        .pypirc nuget.config settings.xml .gemrc auth.json
    """,
    PYTHON: """
        conftest.py sitecustomize.py usercustomize.py .pythonrc .pythonrc.py pytest.ini
        .pytest.ini pytest.toml .coveragerc pyvenv.cfg ipython_config.py
    """,
    SHELL: """
        .envrc .env .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc
        .zshenv .zprofile .zlogin .kshrc .cshrc .tcshrc .tool-versions mise.toml .mise.toml
        mise.local.toml .mise.local.toml .rtx.toml .autoenv .autoenv.zsh .sdkmanrc flake.nix
        shell.nix default.nix devenv.nix devenv.yaml devbox.json .ripgreprc .inputrc
    """,
    EDITOR: """
        .vimrc .exrc .nvimrc .nvim.lua .gvimrc .dir-locals.el .dir-locals-2.el .lvimrc
        .local.vimrc .projectile .devcontainer.json .project .classpath .kateproject
        .kateconfig .netbeans.xml
    """,
    CHECKER: """
        .rubocop.yml pylintrc .pylintrc mypy.ini .mypy.ini .flake8 .semgrep.yml .golangci.yml
        .golangci.yaml phpstan.neon .phpcs.xml .clangd .ccls compile_flags.txt
    """,
    DEBUGGER: """
        .gdbinit .lldbinit .pdbrc .pdbrc.py .rprofile .renviron .irbrc .pryrc .iex.exs .jshellrc
        .node_repl_history
    """,
    GIT: ".gitattributes .gitmodules .gitconfig .lfsconfig .git-blame-ignore-revs .gitmessage",
    AGENT: """
        claude.md claude.local.md agents.md agents.override.md agent.md gemini.md qwen.md codex.md
        warp.md crush.md junie.md replit.md skill.md .cursorrules .windsurfrules .clinerules
        .roorules .roomodes .goosehints .rules .mcp.json mcp.json mcp.jsonc .aider.conf.yml
        copilot-instructions.md opencode.json opencode.jsonc crush.json .crush.json .cursorignore
        .claudeignore .geminiignore .aiderignore
    """,
    CLOCHE: ".cloche.yaml .clocheignore .broodboxignore",
    CI: """
        .gitlab-ci.yml .gitlab-ci.yaml .travis.yml azure-pipelines.yml azure-pipelines.yaml
        .drone.yml .drone.yaml .drone.jsonnet .drone.star bitbucket-pipelines.yml appveyor.yml
        .appveyor.yml .woodpecker.yml .woodpecker.yaml .cirrus.yml .cirrus.star cloudbuild.yaml
        cloudbuild.yml cloudbuild.json buildspec.yml buildspec.yaml action.yml action.yaml
        codemagic.yaml bitrise.yml .build.yml .readthedocs.yml .readthedocs.yaml readthedocs.yml
        wercker.yml .scrutinizer.yml screwdriver.yaml netlify.toml vercel.json render.yaml
        fly.toml app.yaml dagger.json earthfile .gitpod.yml .travis.yaml shippable.yml
        .taskcluster.yml .zuul.yaml zuul.yaml .prow.yaml concourse.yml .semaphore.yml renovate.json
        .renovaterc .renovaterc.json .releaserc .goreleaser.yml .goreleaser.yaml
    """,
    BUILD: """
        makefile gnumakefile bsdmakefile justfile .justfile taskfile.yml taskfile.yaml
        taskfile.dist.yml taskfile.dist.yaml cmakelists.txt cmakepresets.json
        cmakeuserpresets.json conanfile.py conanfile.txt vcpkg.json meson.build meson.options
        meson_options.txt sconstruct sconscript wscript configure configure.ac configure.in
        autogen.sh rakefile rakefile.rb gruntfile gruntfile.js gulpfile.js build.gradle
        build.gradle.kts settings.gradle settings.gradle.kts gradle.properties gradlew gradlew.bat
        gradle-wrapper.properties gradle-wrapper.jar mvnw mvnw.cmd pom.xml build.xml build.sbt
        build.zig build.zig.zon build build.bazel workspace workspace.bazel module.bazel .bazelrc
        .bazelversion buck .buckconfig pants.toml dune dune-project mix.exs rebar.config
        package.swift stack.yaml setup.hs project.clj deps.edn directory.build.props
        directory.build.targets directory.packages.props global.json tox.ini noxfile.py tasks.py
        fabfile.py manage.py dodo.py hatch.toml turbo.json nx.json lerna.json rush.json
        deno.json deno.jsonc wrangler.toml .babelrc .swcrc .mocharc.json .mocharc.yml .mocharc.yaml
        tsconfig.json .c8rc .nycrc .taprc bob.toml procfile
    """,
    INSTALLED: """
        gemfile gems.rb podfile cargo.toml go.mod go.work pipfile environment.yml environment.yaml
        pixi.toml cpanfile shard.yml pubspec.yaml bower.json
    """,
    CONTAINER: """
        dockerfile containerfile vagrantfile compose.yml compose.yaml docker-compose.yml
        docker-compose.yaml tiltfile skaffold.yaml docker-bake.hcl docker-bake.json .dockerignore
        helmfile.yaml chart.yaml
    """,
}

NAMES: Final[dict[str, Risk]] = {
    **{name: risk for risk, names in _BY_NAME.items() for name in names.split()},
    "build.rs": Risk("held", "is run by cargo and by editors that look at Rust code"),
}

_BY_FOLDER: Final[dict[Risk, str]] = {
    HOOK: ".husky .githooks githooks .git-hooks git-hooks .lefthook .lefthook-local .hooks",
    PACKAGE: ".yarn .cargo .mvn .bundle .pip",
    MODULES: "node_modules/.bin .venv/bin venv/bin .venv/scripts venv/scripts __pypackages__",
    SHELL: ".direnv .mise .devenv .config/mise .config/fish",
    EDITOR: """
        .vscode .idea .run .zed .fleet .vim .nvim .helix .vs .settings .devcontainer .theia
        .nova .kakrc .atom .sublime
    """,
    AGENT: """
        .claude .claude-plugin .cursor .codex .gemini .opencode .windsurf .roo .cline .clinerules
        .kiro .junie .qwen .amp .agents .agent .continue .augment .crush .goose .trae .factory
        .github/instructions .github/prompts .github/chatmodes .github/agents .github/skills
        .github/hooks .openhands .rovodev .firebender .aiassistant
    """,
    CI: """
        .github/workflows .github/actions .gitlab .circleci .buildkite .woodpecker .teamcity
        .semaphore .tekton .forgejo/workflows .gitea/workflows .builds .azure-pipelines
        .azuredevops .ado .jenkins .dagger .harness .cloudbuild .drone .ci
    """,
    BUILD: "buildsrc gradle/wrapper .bazel .swiftpm",
    REPOSITORY: ".git .hg .svn .bzr .jj _darcs .fossil-settings",
}

FOLDERS: Final[dict[str, Risk]] = {
    folder: risk for risk, folders in _BY_FOLDER.items() for folder in folders.split()
}

_CODE: Final = r"\.(js|cjs|mjs|ts|cts|mts|json|jsonc|json5|ya?ml|toml)$"
_CHECKERS: Final = "eslint|prettier|stylelint|biome|oxlint|tslint|standard|xo|rome|dprint|textlint"

PATTERNS: Final[tuple[tuple[re.Pattern[str], Risk], ...]] = tuple(
    (re.compile(pattern), risk)
    for pattern, risk in (
        (r"\.(pth|egg-link)$", PYTHON),
        (r"^\.(huskyrc|lintstagedrc|commitlintrc|czrc|simple-git-hooks)(\.|$)", HOOK),
        (rf"^(lint-staged|commitlint|simple-git-hooks)\.config{_CODE}", HOOK),
        (rf"^\.({_CHECKERS})rc(\.|$)", CHECKER),
        (rf"^\.?({_CHECKERS})(\.config)?{_CODE}", CHECKER),
        (r"\.(code-workspace|sublime-project|sublime-workspace|iml|ipr|iws|run\.xml)$", EDITOR),
        (r"^\.env\.(?!example$|sample$|template$|dist$)", SHELL),
        (r"^\.?mise\..*toml$", SHELL),
        (r"\.(mdc|instructions\.md|prompt\.md|chatmode\.md|agent\.md)$", AGENT),
        (r"^(jenkinsfile)|\.jenkinsfile$", CI),
        (r"gitlab-ci.*\.ya?ml$", CI),
        (r"^azure-pipelines.*\.ya?ml$", CI),
        (r"^(makefile|gnumakefile)\.|\.(mk|mak|make|cmake|bzl|bazel|gyp|gypi|rake|ninja)$", BUILD),
        (r"\.(gradle|gradle\.kts|sbt|cabal|gemspec|podspec|nimble|rockspec)$", BUILD),
        (r"\.(cs|fs|vb|vcx|sql|wix)?proj$|\.(sln|slnx|targets|props)$", BUILD),
        (r"\.(pbxproj|xcscheme|xcconfig|xcworkspacedata)$", BUILD),
        (r"(^|\.)(docker|container)file(\.|$)", CONTAINER),
        (r"^(docker-)?compose\..*ya?ml$", CONTAINER),
        (r"\.(config|setup|rc)\.(js|cjs|mjs|ts|cts|mts)$", BUILD),
        (r"^\.[a-z-]+rc\.(js|cjs|mjs|ts)$", BUILD),
    )
)
