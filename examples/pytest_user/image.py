"""A small library: grey images whose rows start on multiples of 16 bytes."""


# [image]
class Image:
    """Pixels of 8 bits in rows that are padded to 16 bytes. Exports its memory through the array interface."""

    def __init__(self, height: int, width: int) -> None:
        self.shape = (height, width)
        self._row_bytes = -(-width // 16) * 16
        self._memory = bytearray(height * self._row_bytes)

    def set_row(self, row: int, pixels: bytes) -> None:
        start = row * self._row_bytes
        self._memory[start : start + self.shape[1]] = pixels

    @property
    def __array_interface__(self) -> dict:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": "|u1",
            "strides": (self._row_bytes, 1),
            "data": self._memory,
        }


# [/image]
