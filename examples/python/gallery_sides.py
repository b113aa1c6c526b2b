"""A storage on host and device: which copies gridbuf makes. docs/gallery.md shows the bytes of each step."""

# [data]
import gridbuf
import gridbuf.testing

gridbuf.testing.emulated_device()  # its memory is apart from the host's, and it counts copies
field = gridbuf.storage.zeros((64, 64, 80), backend="gt:gpu", halo=(2, 2, 0))
steps = []


def note(step: str, result: object = "") -> None:
    copied = gridbuf.testing.statistics()
    sides = copied["host_to_device_bytes"], copied["device_to_host_bytes"]
    steps.append((step, *sides, str(field.sync_state)))
    print(*steps[-1], result)


field[:2] = 1.0
note("field[:2] = 1.0")
field.host_to_device()
note("field.host_to_device()")
field *= 2.0
note("field *= 2.0")
note("field.sum()", field.sum())
note("field[0, 0, 0]", field[0, 0, 0])
field[-2:] = 3.0
note("field[-2:] = 3.0")
note("field.sum()", field.sum())
# [/data]
