"""A producer for the conformance suite: an allocator of fields for gt4py.next. Run it with

gridbuf-conformance check examples/python/my_allocator.py:Producer
"""

# [producer]
import gridbuf.gt4py.next
from gridbuf_conformance.plugins.libraries.gt4py_next import AllocatorProducer


class Producer(AllocatorProducer):
    """The allocator of gridbuf. Put yours there."""

    name = "mylib"

    def version(self):
        return gridbuf.__version__

    def allocator(self, layout_mapper, alignment_size):
        return gridbuf.gt4py.next.FieldAllocator(
            layout_mapper=layout_mapper, byte_alignment=alignment_size
        )


# [/producer]
