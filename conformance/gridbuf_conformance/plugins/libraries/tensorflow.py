"""TensorFlow's eager tensors on the processor. They are immutable."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # it writes its start to the error stream

import numpy as np  # noqa: E402 (after the settings)
import tensorflow as tf  # noqa: E402

from ...plan import Plan  # noqa: E402
from ...producers.base import INTEGERS, HostProducer, row_major  # noqa: E402
from .numpy import numpy_dtype  # noqa: E402

_DTYPES = (
    "float64",
    "float32",
    "float16",
    *INTEGERS,
    "bool",
    "complex64",
    "complex128",
    "bfloat16",
)


class TensorFlowProducer(HostProducer):
    """`tf.constant` of a copy."""

    name = "tensorflow"
    no_views = "its slices are new tensors"
    capabilities = row_major(_DTYPES, max_ndim=32, readonly=(True,))

    def make(self, plan: Plan) -> Any:
        special = plan.dtype == "bfloat16"
        dtype = np.dtype(np.uint16) if special else numpy_dtype(plan)
        with tf.device("CPU:0"):
            tensor = tf.constant(np.frombuffer(plan.content(), dtype).reshape(plan.shape))
            return tf.bitcast(tensor, tf.bfloat16) if special else tensor


class StringProducer(TensorFlowProducer):
    """A tensor of `tf.string`: its memory cannot be exported, so every export has to be refused."""

    name = "tensorflow.string"
    capabilities = row_major(("bytes5",), max_ndim=32, max_nbytes=2**12, readonly=(True,))

    def make(self, plan: Plan) -> Any:
        content = plan.content()
        texts = [content[start : start + 5] for start in range(0, len(content), 5)]
        with tf.device("CPU:0"):
            return tf.reshape(tf.constant(texts, tf.string), plan.shape)
