"""What is withheld from the agent, and what the review does not show."""

from __future__ import annotations


class IgnoreRules:
    """The base snapshot's rules; an agent's edit of an ignore file changes nothing here."""

    def ignored(self, path: bytes, is_dir: bool = False) -> bool:
        """Whether the review hides a change of `path` (a tracked path never is)."""
        raise NotImplementedError

    def secret(self, path: bytes) -> bool:
        """Whether `path` is withheld by name, whatever else is said."""
        raise NotImplementedError
