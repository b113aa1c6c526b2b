"""The emulated device of libgridbuf, for tests."""

import ctypes

import pytest
from c_library import call


@pytest.fixture
def emulated():
    before = ctypes.c_int32()
    call("use_emulated_device", 1, ctypes.byref(before))
    yield
    call("use_emulated_device", before, None)
