"""Where the memory of a model goes, as text and as a picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core
from ._workspace import alive


class Part(NamedTuple):
    """A kind of memory.

    Attributes
    ----------
    place : str
        "host", "cuda" or "emulated" (the device).
    name : str
        What has it: "arrays and fields", "kept for later", "workspaces", "shared".
    nbytes : int
        Bytes now. Of workspaces on the host, those of the pages that programs have touched.
    peak : int or None
        The most bytes so far; None if it is not counted.
    """

    place: str
    name: str
    nbytes: int
    peak: int | None


class Report:
    """What gridbuf has at one time; `str` gives a table, `plot` a picture.

    Attributes
    ----------
    parts : tuple of Part
        Those of the host, then those of devices.
    process : int
        Bytes of host memory that the whole process has now, with the memory of other libraries. It does not count pages that
        no program has touched, so it can be less than the sum of the parts.
    """

    def __init__(self) -> None:
        host = _core._memory_statistics()
        found = [
            Part("host", "arrays and fields", host["live_bytes"], host["peak_live_bytes"]),
            Part("host", "kept for later", host["cached_bytes"], None),
            _of_workspaces("host"),
            Part("host", "shared", _core._shared_bytes(), None),
        ]
        for place, (pinned, managed, device) in _core._device_live_bytes().items():
            if not (pinned or managed or device):
                continue
            work = _of_workspaces(place)
            found += [
                Part("host", f"pinned for {place}", pinned, None),
                Part(place, "managed", managed, None),
                Part(place, "arrays and fields", device - work.nbytes, None),
                work,
            ]
        self.parts = (*sorted(found, key=lambda part: part.place != "host"),)
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        self.process = pages * os.sysconf("SC_PAGE_SIZE")

    def __str__(self) -> str:
        lines = [f"{'place':10}{'what':28}{'MiB now':>12}{'at most':>12}"]
        for place, name, nbytes, peak in (
            *self.parts,
            Part("host", "the process, all libraries", self.process, None),
        ):
            most = "" if peak is None else f"{peak / 2**20:12.1f}"
            lines.append(f"{place:10}{name:28}{nbytes / 2**20:12.1f}{most}")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the parts as bars, with the peaks as lines.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            `ax`, or that of the new figure.

        Raises
        ------
        ImportError
            matplotlib is not installed.
        """
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=(7, 0.4 * len(self.parts) + 1), layout="constrained")
        rows = [part for part in self.parts if part.nbytes or part.peak]
        names = [f"{part.place}: {part.name}" for part in rows]
        ax.barh(names, [part.nbytes / 2**20 for part in rows])
        for row, part in enumerate(rows):
            if part.peak is not None:
                ax.plot([part.peak / 2**20] * 2, [row - 0.4, row + 0.4], color="black")
        ax.invert_yaxis()
        ax.set_xlabel("MiB now (bars) and at most (lines)")
        return ax


def report() -> Report:
    """Return what memory gridbuf has now, and how much at most.

    Returns
    -------
    Report
        Print it, or call its `plot`. Host arrays below 2 MiB are the C library's and are not counted; nor are those that a
        device driver of another library has.

    Notes
    -----
    Rules: docs/spec.md 2.39.

    Examples
    --------
    >>> import gridbuf
    >>> field = gridbuf.storage.zeros((128, 128, 64), memory="shared")
    >>> shared = next(part for part in gridbuf.memory.report().parts if part.name == "shared")
    >>> shared.nbytes >= field.nbytes
    True
    """
    return Report()


def _of_workspaces(place: str) -> Part:
    spaces = [s for s in alive if (s.device is None) == (place == "host")]
    return Part(place, "workspaces", sum(s.committed for s in spaces), sum(s.peak for s in spaces))
