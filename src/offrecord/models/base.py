"""Types that all models share."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Label: TypeAlias = str | int | float | bool
Mask: TypeAlias = NDArray[np.bool_]
