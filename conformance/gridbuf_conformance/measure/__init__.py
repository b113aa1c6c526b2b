"""Measuring: what an array says of itself and what its memory holds, as plain JSON-able info.

Runs where the array lives (the worker). It judges nothing: a getter that raises, a field that makes
no sense, an address that is not mapped is noted like anything else. It works in stages, and an
address is followed only after the stages before it found nothing wrong with it:

1. *metadata*: what each interface returns (`interface`, `buffer`, `capsules`);
2. *arithmetic*: `descriptors` turns that into address, shape and strides, or rejects it;
3. *mapping*: is every byte that an index can reach mapped (`content`)?
4. *content*: reading sampled elements, writing one and reading it back (`content`);
5. *life*: dropping, resizing, counting deleters, looking for leaks (`life`).

Every step that runs the producer's code or touches its memory is announced through `steps.enter`,
so that a death in the middle is counted against the right rule.
"""

from .observation import THREADS, observe

__all__ = ["THREADS", "observe"]
