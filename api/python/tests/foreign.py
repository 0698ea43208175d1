# SPDX-License-Identifier: Apache-2.0
"""An array that is not NumPy's."""

from __future__ import annotations

import numpy


class Foreign:
    """An array of another package that supports only DLPack."""

    def __init__(self, array: numpy.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **kwargs: object) -> object:
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()
