"""What memory this process has mapped, read from `/proc/self/maps` (Linux).

This source does not depend on the producer: whatever the producer says about an address, the list
of the kernel says whether it can be read or written. On systems without the file `AddressMap.known`
is False and the rules that need it are untested.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_KERNEL_PAGES = (b"[vvar]", b"[vvar_vclock]", b"[vsyscall]")
"""Listed as readable, and not for reading."""


class AddressMap:
    """A snapshot of the mapped regions; `covers` refreshes it once before it says no.

    A region that was unmapped after the snapshot would still be found in it: take a new snapshot
    (`refresh`) after anything that may have freed memory.
    """

    def __init__(self) -> None:
        self.known = True
        self._text = b""
        self._lines: list[tuple[bytes, bytes, bytes, bytes]] = []
        self._last = _NOWHERE
        self.refresh()

    def refresh(self) -> AddressMap:
        """Reads the kernel's list again; returns itself."""
        try:
            with open("/proc/self/maps", "rb", buffering=0) as file:
                text = file.readall()
        except OSError:
            self.known = False
            return self
        if text != self._text:
            # Hundreds of lines, of which a search looks at a dozen: numbers are made of those only.
            self._text, self._lines = text, _LINE.findall(text)
            self._last = _NOWHERE
        return self

    def covers(self, low: int, high: int, access: str = "r") -> bool:
        """Whether every byte of [low, high) is mapped with the access "r", "w" or "x".

        An empty range is covered anywhere. Addresses are plain integers of any magnitude. Where the
        map is not known, everything but the first page counts as covered: nothing has been proved.
        """
        if low >= high:
            return True
        if not self.known:
            return low >= 4096
        return self._covered(low, high, access) or self.refresh()._covered(low, high, access)

    def _covered(self, low: int, high: int, access: str) -> bool:
        letter = access.encode()
        start, end, granted = self._last
        if start <= low and high <= end and letter in granted:
            return True
        position = bisect_right(self._lines, low, key=_first_address) - 1
        while low < high:
            if position < 0 or position >= len(self._lines):
                return False
            start, end, granted = self._last = _region(self._lines[position])
            if not start <= low < end or letter not in granted:
                return False
            low, position = end, position + 1
        return True


_NOWHERE = (0, 0, b"---")
_LINE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S+)(.*)$", re.MULTILINE)


def _first_address(line: tuple[bytes, bytes, bytes, bytes]) -> int:
    return int(line[0], 16)


def _region(line: tuple[bytes, bytes, bytes, bytes]) -> tuple[int, int, bytes]:
    """(first address, address behind the last, granted accesses) of one line of the list."""
    start, end, access, rest = line
    return int(start, 16), int(end, 16), b"---" if rest.endswith(_KERNEL_PAGES) else access
