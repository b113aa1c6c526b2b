"""A capsule of Quadrants' to_dlpack that is not consumed is never freed."""

import resource
import sys

import quadrants

quadrants.init(arch=quadrants.cpu)
array = quadrants.ndarray(quadrants.f32, (4,))


def grown(exports):
    """Growth of the process in KiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(exports):
        array.to_dlpack()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


grown(10_000)
kib = grown(200_000)
sys.exit(f"defect: {kib} KiB more after 200,000 dropped capsules" if kib > 4096 else 0)
