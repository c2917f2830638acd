"""How tokens that run out are renewed, as data of a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """Where tokens stand in the file, and who renews them."""

    host: str
    port: int
    path: str
    client_id: str
    access: tuple[str, ...]
    """Keys that lead to the token; so do the next two."""
    refresh: tuple[str, ...]
    expires: tuple[str, ...]
    """To the time of its end, unix seconds or, where `milliseconds`, a thousand times that."""
    milliseconds: bool = False
