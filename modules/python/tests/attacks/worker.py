"""One process of an attack: runs case after case until its time is up, and says in shared memory which one it is at."""

from __future__ import annotations

import faulthandler
import mmap
import random
import struct
import sys
import time
from pathlib import Path

from attacks import ATTACKS, LeftOver

NUMBER = struct.Struct("q")


def main() -> None:
    path, name, seed, first, seconds = sys.argv[1:]
    faulthandler.enable()
    with Path(path).open("r+b") as file:
        at = mmap.mmap(file.fileno(), NUMBER.size)
    attack = ATTACKS[name]()
    end = time.monotonic() + float(seconds)
    number = int(first)
    while True:
        NUMBER.pack_into(at, 0, number)
        attack.case(random.Random(f"{seed} {name} {number}"))
        number += 1
        if time.monotonic() >= end:
            break
    NUMBER.pack_into(at, 0, number)


if __name__ == "__main__":
    try:
        main()
    except LeftOver:
        pass  # A forked child that ends as a program does.
