# SPDX-License-Identifier: Apache-2.0
"""Arrays that are not NumPy's."""

from __future__ import annotations

import ctypes

import numpy


class Foreign:
    """An array of another package that supports only DLPack."""

    def __init__(self, array: numpy.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **kwargs: object) -> object:
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class _Dlpack(ctypes.Structure):  # DLManagedTensor
    _fields_ = (
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("extents", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


_kept: list[object] = []  # what capsules point to


def capsule(*extents: int) -> object:
    """A DLPack capsule of fp32 numbers with any extents. There is memory for one number."""
    number, shape = ctypes.c_float(1), (ctypes.c_int64 * len(extents))(*extents)
    cpu, floating = (ctypes.c_int32 * 2)(1, 0), 2
    tensor = _Dlpack(ctypes.addressof(number), cpu, len(extents), floating, 32, 1, shape, None, 0, None, None)
    _kept.append((number, shape, tensor))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.addressof(tensor), b"dltensor", None)
