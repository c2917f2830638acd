"""Names that are withheld from every agent, and folders that are only weight.

The secret names cannot be negated by any file or option. They match at any depth and in any case of
letters, for a withheld file that nobody needed costs a line in the report and a leaked key costs
more. The list is the union of what comparable tools withhold; templates of `.env` files are no
secrets and stay visible.
"""

from __future__ import annotations

import re
from typing import Final

SECRET_NAMES: Final = (
    *(".env*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.truststore"),
    *("id_rsa*", "id_ed25519*", "id_ecdsa*", "credentials.json", ".git-credentials", ".netrc"),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".vault-token", "*.tfstate*", "*.tfvars"),
    *("age-key.txt", "*.age"),
)
"""Names of files and folders; `*` is any text without a slash."""

SECRET_FOLDERS: Final = (
    *(".ssh", ".aws", ".gcp", ".gcloud", ".azure", ".gnupg", ".terraform"),
    *(".config/gcloud", ".config/cloche"),
)
"""Folders, by the end of their path. Cloche's own config may name secrets."""

SECRET_PATHS: Final = (".docker/config.json", ".kube/config", ".config/gh/hosts.yml")
"""Files, by the end of their path."""

TEMPLATE_WORDS: Final = (
    *("example", "examples", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults"),
    "schema",
)
"""A `.env` name that ends in one of these words describes settings and holds none."""

HEAVY_FOLDERS: Final = (
    *("node_modules", "vendor", "__pycache__", "target", "build", "dist", ".venv", ".tox"),
)
"""Folders that are left out unless git tracks something inside or a `!pattern` asks for them."""

IGNORE_FILES: Final = (".broodboxignore", ".clocheignore")
"""Files in the workspace's root that leave more out, in order: the later one decides."""


def _glob(pattern: str) -> str:
    return ".*".join(re.escape(part) for part in pattern.split("*"))


def _any_of(patterns: tuple[str, ...]) -> str:
    return "|".join(map(_glob, patterns))


_FLAGS: Final = re.IGNORECASE | re.DOTALL
_NAME: Final = re.compile(_any_of(SECRET_NAMES).encode(), _FLAGS)
_TEMPLATE: Final = re.compile(rf"\.env[^/]*[.\-_](?:{'|'.join(TEMPLATE_WORDS)})".encode(), _FLAGS)
_FOLDER: Final = re.compile(rf"(?:.*/)?(?:{_any_of(SECRET_FOLDERS)})".encode(), _FLAGS)
_FILE: Final = re.compile(rf"(?:.*/)?(?:{_any_of(SECRET_PATHS)})".encode(), _FLAGS)
_FOLDER_ENDS: Final = frozenset(text.rpartition("/")[2].encode() for text in SECRET_FOLDERS)
_FILE_ENDS: Final = frozenset(text.rpartition("/")[2].encode() for text in SECRET_PATHS)


def is_secret(path: bytes, is_dir: bool) -> bool:
    """Whether this very path is withheld (its parents are not looked at)."""
    name = path[path.rfind(b"/") + 1 :]
    if _NAME.fullmatch(name):
        return not _TEMPLATE.fullmatch(name)
    ends, form = (_FOLDER_ENDS, _FOLDER) if is_dir else (_FILE_ENDS, _FILE)
    return name.lower() in ends and form.fullmatch(path) is not None


def is_secret_below(path: bytes) -> bool:
    """Whether `path` (a file) or any folder above it is withheld."""
    cut = path.find(b"/")
    while cut >= 0:
        if is_secret(path[:cut], is_dir=True):
            return True
        cut = path.find(b"/", cut + 1)
    return is_secret(path, is_dir=False)


def names_a_secret(pattern: str) -> bool:
    """Whether a gitignore-style pattern (without its `!`) asks for a withheld name."""
    text = pattern.strip().strip("/").removeprefix("**/").encode("utf-8", "surrogateescape")
    return bool(text) and (is_secret(text, is_dir=True) or is_secret_below(text))
