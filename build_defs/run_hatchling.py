"""Builds a wheel with hatchling from declared files: run_hatchling.py OUT FOLDER FILE…

FOLDER is the project's folder. The FILEs are those under it, and those next to it that its hook reads. Bazel's inputs
are links, so hatchling gets copies.
"""

import os
import pathlib
import shutil
import sys
import tempfile

from hatchling.build import build_wheel

out, folder = map(pathlib.Path, sys.argv[1:3])
out = out.absolute()
with tempfile.TemporaryDirectory() as tree:
    for file in map(pathlib.Path, sys.argv[3:]):
        copy = tree / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    os.chdir(tree / folder)
    build_wheel(str(out))
    os.chdir(out)  # so that the temporary folder can be removed
