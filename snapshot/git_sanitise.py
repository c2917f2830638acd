"""Which of a repository's settings go along into the guest.

An allow-list: what is not known to be plain data stays behind. Left out is everything that runs a
program, names a place on the host, or may carry a credential; URLs lose their user information.
"""

from __future__ import annotations

import re
from typing import Final

from snapshot.git_config import BadConfig, Setting, parse, render


def _keys(section: str, names: str) -> set[str]:
    return {f"{section}.{name}" for name in names.split()}


_PLAIN: Final = frozenset(
    _keys(
        "core",
        "repositoryformatversion filemode logallrefupdates ignorecase precomposeunicode symlinks"
        " autocrlf eol safecrlf checkroundtripencoding quotepath abbrev compression"
        " loosecompression bigfilethreshold sparsecheckout sparsecheckoutcone protecthfs"
        " protectntfs commentchar whitespace warnambiguousrefs notesref commitgraph",
    )
    | _keys("branch", "autosetupmerge autosetuprebase sort merge rebase description")
    | _keys(
        "remote",
        "fetch push tagopt mirror prune prunetags skipdefaultupdate skipfetchall promisor"
        " partialclonefilter",
    )
    | _keys("user", "name email")
    | _keys(
        "merge",
        "conflictstyle ff log renames renamelimit directoryrenames stat branchdesc"
        " defaulttoupstream renormalize autostash",
    )
    | _keys(
        "diff",
        "algorithm renames renamelimit context interhunkcontext mnemonicprefix noprefix colormoved"
        " colormovedws indentheuristic submodule ignoresubmodules wserrorhighlight statgraphwidth"
        " wordregex suppressblankempty dirstat relative xfuncname funcname binary",
    )
    | _keys(
        "fetch",
        "prune prunetags all parallel fsckobjects recursesubmodules showforcedupdates output"
        " writecommitgraph unpacklimit",
    )
    | _keys("push", "default autosetupremote followtags recursesubmodules useforceifincludes")
    | _keys("pull", "rebase ff")
    | _keys("submodule", "branch active ignore fetchrecursesubmodules shallow recurse fetchjobs")
    | _keys(
        "log",
        "date decorate abbrevcommit follow showroot graphcolors initialdecorationset"
        " excludedecoration diffmerges mailmap",
    )
    | _keys("rerere", "enabled autoupdate")
    | _keys(
        "rebase",
        "autosquash autostash updaterefs missingcommitscheck stat abbreviatecommands rebasemerges"
        " forkpoint",
    )
    | _keys("tag", "sort")
    | _keys(
        "pack",
        "threads window depth windowmemory deltacachesize deltacachelimit compression"
        " packsizelimit island writebitmaps usesparse allowpackreuse",
    )
    | _keys("gc", "auto autopacklimit autodetach pruneexpire worktreepruneexpire reflogexpire")
    | _keys(
        "status",
        "showuntrackedfiles branch short aheadbehind renames renamelimit submodulesummary"
        " relativepaths showstash displaycommentprefix",
    )
    | _keys("commit", "cleanup verbose status")
    | _keys("checkout", "defaultremote guess")
    | _keys("i18n", "commitencoding logoutputencoding")
    | _keys("index", "sparse threads")
    | _keys("init", "defaultbranch")
    | _keys("extensions", "objectformat compatobjectformat partialclone noop preciousobjects")
)
"""Settings whose values are plain data wherever they stand."""

_WHOLE_SECTIONS: Final = frozenset({"color", "advice"})

_URLS: Final = frozenset({"remote.url", "remote.pushurl", "submodule.url"})

_REMOTES: Final = frozenset({"branch.remote", "branch.pushremote", "remote.pushdefault"})
"""A remote's name, or a URL in its place."""

_FORCED: Final = (
    Setting("core", None, "bare", "false"),
    # The guest's inode numbers, change times and fractions of seconds are not those of the index.
    Setting("core", None, "checkstat", "minimal"),
    Setting("core", None, "trustctime", "false"),
)

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(.*)", re.DOTALL)
_SCP: Final = re.compile(r"(?:([^/:]*)@)?([^/:@]+):(?!:)(.*)", re.DOTALL)
_LOGIN: Final = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
_SSH: Final = frozenset({"ssh", "git+ssh", "ssh+git"})
_NAME: Final = re.compile(r"[^\s:/@][^\s:@]*")


def clean_url(url: str) -> str | None:
    """Take user information, query and fragment out of a URL; None when it cannot be told apart.

    A plain login name stays where SSH needs it. Helper addresses (`ext::…`) run programs: None.
    """
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in url) or "\\" in url:
        return None
    whole = _SCHEME.fullmatch(url)
    if whole:
        scheme, authority, path, _ = whole.groups()
        user, _, host = authority.rpartition("@")
        keep = f"{user}@" if scheme.lower() in _SSH and _LOGIN.fullmatch(user) else ""
        return f"{scheme}://{keep}{host}{path}"
    if "::" in url or "://" in url:
        return None
    if url.startswith(("/", ".", "~")) or not ("@" in url or ":" in url):
        return None if "@" in url and ":" in url else url
    short = _SCP.fullmatch(url)
    if short is None or "@" in short[3]:
        return None
    keep = f"{short[1]}@" if short[1] and _LOGIN.fullmatch(short[1]) else ""
    return f"{keep}{short[2]}:{short[3]}"


def _clean(item: Setting) -> Setting | None:
    """Give the setting as it may go along, or None."""
    if item.subsection is not None and _unsafe_subsection(item.subsection):
        return None
    if item.name in _PLAIN or item.section in _WHOLE_SECTIONS:
        return item
    value = item.value or ""
    if item.name in _REMOTES and (value == "." or _NAME.fullmatch(value)):
        return item
    if item.name in _URLS or item.name in _REMOTES:
        url = clean_url(value)
        return Setting(item.section, item.subsection, item.key, url) if url else None
    if item.name == "submodule.update" and value in {"checkout", "rebase", "merge", "none"}:
        return item
    return None


def _unsafe_subsection(text: str) -> bool:
    return "://" in text or "::" in text or "\n" in text or "\0" in text


def _is_extension(item: Setting, key: str) -> bool:
    true = item.value is None or item.value.lower() in {"true", "yes", "on", "1"}
    return item.name == f"extensions.{key}" and item.subsection is None and true


def uses_worktree_config(config: bytes) -> bool:
    """Whether the repository keeps settings in `config.worktree` as well. Raises BadConfig."""
    return any(_is_extension(item, "worktreeconfig") for item in parse(config))


def object_hash(config: bytes) -> str:
    """Name the hash of the repository's objects: "sha1" or "sha256"."""
    try:
        values = [item.value for item in parse(config) if item.name == "extensions.objectformat"]
    except BadConfig:
        return "sha1"
    return "sha256" if values and values[-1] == "sha256" else "sha1"


def sanitise(config: bytes, worktree_config: bytes = b"") -> bytes:
    """Make the guest's config from the repository's and its worktree's. Raises BadConfig."""
    settings = parse(config) + parse(worktree_config)
    kept = [clean for item in settings if (clean := _clean(item)) is not None]
    return render([*kept, *_FORCED])


def minimal(hash_name: str) -> bytes:
    """Make a config for a repository whose own cannot be read."""
    version = Setting("core", None, "repositoryformatversion", "1")
    kind = Setting("extensions", None, "objectformat", hash_name)
    return render([version, *_FORCED, kind])
