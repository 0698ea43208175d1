# SPDX-License-Identifier: Apache-2.0
"""Types of arguments, for annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Union

from numpy.typing import ArrayLike

from ._core import Array


class SupportsDLPack(Protocol):
    """An array of any package, on the host or on a device."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


class SupportsBuffer(Protocol):
    """An object with Python's buffer protocol, such as bytes, array.array or memoryview."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


Value = Union[ArrayLike, Array, SupportsDLPack, SupportsBuffer, Sequence[object], Mapping[str, object], Mapping[int, object], None]
"""What an input or a weight may be: an array of any package, numbers, and for sequences, optionals and maps their elements."""
