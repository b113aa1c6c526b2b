"""A tensor over pages that refuse writing is exported as writable: NumPy's write ends the process."""

import mmap
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

if sys.argv[1:]:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryFile() as file:
        file.write(bytes(4096))
        file.flush()
        pages = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ)
    array = np.from_dlpack(torch.frombuffer(pages, dtype=torch.uint8))
    if array.flags.writeable:
        array[0] = 1
    sys.exit(0)
code = subprocess.run([sys.executable, __file__, "write"]).returncode
sys.exit(f"defect: the process died of signal {-code}" if code < 0 else code)
