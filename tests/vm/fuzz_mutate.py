"""Bytes that are almost right: seeded changes of good messages, the same for the same number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

MAX_SIZE: Final = 200_000
"""Longer than each bound of the parsers, which is 131,072 at most."""
EDGES: Final = (0, 1, 2, 3, 4, 0x0F, 0x10, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xFE, 0xFF)
"""Values at which lengths, flags and compressed names change their meaning."""


class Mutator:
    """Changes good messages. `words` are what the protocol is made of."""

    def __init__(self, dice: random.Random, seeds: Sequence[bytes], words: Sequence[bytes]) -> None:
        self.dice = dice
        self._seeds = seeds
        self._words = words

    def message(self) -> bytes:
        """Return a good message with up to eight changes; one in forty stays as it is."""
        data = bytearray(self.dice.choice(self._seeds))
        if self.dice.random() < 0.025:
            return bytes(data)
        changes = (
            *(self._set, self._flip, self._number, self._cut, self._insert),
            *(self._repeat, self._word, self._splice),
        )
        for _ in range(self.dice.randint(1, 8)):
            self.dice.choice(changes)(data)
            if not data or len(data) > MAX_SIZE:
                break
        return bytes(data[:MAX_SIZE])

    def pieces(self, data: bytes) -> list[bytes]:
        """Cut a message as a stream may cut it: mostly in few pieces, at times in single bytes."""
        if len(data) < 500 and self.dice.random() < 0.1:
            return [bytes((value,)) for value in data]
        cuts = sorted(self.dice.randint(0, len(data)) for _ in range(self.dice.randint(0, 5)))
        return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]

    def _at(self, data: bytearray) -> int:
        return self.dice.randrange(len(data) + 1)

    def _set(self, data: bytearray) -> None:
        data[self._at(data) - 1 or 0] = self.dice.choice(EDGES)

    def _flip(self, data: bytearray) -> None:
        data[self._at(data) - 1 or 0] ^= 1 << self.dice.randrange(8)

    def _number(self, data: bytearray) -> None:
        """Change a number of 16 bits a little, or to a bound: most of them are lengths."""
        at = self._at(data)
        old = int.from_bytes(data[at : at + 2], "big")
        new = self.dice.choice((old + 1, old - 1, old * 2, 0, 0xFFFF, len(data)))
        data[at : at + 2] = (new & 0xFFFF).to_bytes(2, "big")

    def _cut(self, data: bytearray) -> None:
        at = self._at(data)
        del data[at : at + self.dice.choice((1, 2, 4, 16, len(data)))]

    def _insert(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = self.dice.randbytes(self.dice.choice((1, 2, 4, 40)))

    def _repeat(self, data: bytearray) -> None:
        """Say a part again, now and then so often that the bounds are reached."""
        at = self._at(data)
        part = data[at : at + self.dice.choice((1, 4, 20, 200))]
        times = self.dice.choice((1, 1, 1, 2, 9, 1 + MAX_SIZE // 2 // max(1, len(part))))
        data[at:at] = part * (times if self.dice.random() < 0.1 else 1)

    def _word(self, data: bytearray) -> None:
        at = self._at(data)
        word = self.dice.choice(self._words)
        data[at : at + self.dice.choice((0, len(word)))] = word

    def _splice(self, data: bytearray) -> None:
        other = self.dice.choice(self._seeds)
        at = self.dice.randrange(len(other) + 1)
        data[self._at(data) :] = other[at:]
