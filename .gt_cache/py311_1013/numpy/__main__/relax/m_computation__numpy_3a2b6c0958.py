import numbers
from typing import Tuple

import numpy as np
from gt4py.cartesian.gtc import ufuncs
from gt4py.cartesian.utils import Field


def run(*, f, r, _domain_, _origin_):

    # --- begin domain boundary shortcuts ---
    _di_, _dj_, _dk_ = 0, 0, 0
    _dI_, _dJ_, _dK_ = _domain_
    __k_mask = np.empty(_domain_, dtype=int)
    __k_mask[:, :] = np.arange(_dK_, dtype=int)
    # --- end domain padding ---

    f = Field(f, _origin_["f"], (True, True, False))
    r = Field(r, _origin_["r"], (True, True, False))

    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        # --- begin vertical block ---
        k, K = _dk_, _dk_ + 1
        for k_ in range(k, K):
            # --- begin horizontal block --
            i, I = _di_ - 0, _dI_ + 0
            j, J = _dj_ - 0, _dJ_ + 0

            r[i:I, j:J] = f[i:I, j:J] + (
                np.float64(0.125)
                * (
                    (
                        ((f[i - 1 : I - 1, j:J] + f[i + 1 : I + 1, j:J]) + f[i:I, j - 1 : J - 1])
                        + f[i:I, j + 1 : J + 1]
                    )
                    - (np.float64(4.0) * f[i:I, j:J])
                )
            )
            # --- end horizontal block --

        # --- end vertical block ---
