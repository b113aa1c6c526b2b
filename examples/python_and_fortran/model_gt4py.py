"""The model, whose steps in Python are a stencil of GT4Py on the same storages."""

# [stencil]
import numpy as np
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import FORWARD, IJ, Field, computation, interval

import model


@gtscript.stencil(backend="numpy")
def step(field: Field[IJ, np.float64], result: Field[IJ, np.float64]):
    with computation(FORWARD), interval(0, 1):
        result = field + 0.125 * (  # noqa: F841
            field[-1, 0] + field[1, 0] + field[0, -1] + field[0, 1] - 4.0 * field
        )


field = model.run(20, in_python=step)
# [/stencil]

if __name__ == "__main__":
    print(np.round(field.to_numpy()[14:19, 6:11], 2))
