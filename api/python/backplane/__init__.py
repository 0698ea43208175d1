# SPDX-License-Identifier: Apache-2.0
"""Run any ONNX model on any vendor's hardware.

    import backplane
    session = backplane.load("model.onnx").compile()
    results = session.run({"x": x})          # NumPy arrays by name

An environment has the backends that were found; a model is checked and canonical; a session is a model placed on devices and
compiled; a run has memory bound to the inputs and outputs of a session. `load`, `devices` and `from_dlpack` use one environment
that the whole process shares; make an `Environment` for settings of your own.
"""

from __future__ import annotations

import os

from ._core import (
    Array,
    Cancel,
    Candidate,
    Device,
    Environment,
    Model,
    Run,
    Session,
    Stream,
    ValueInfo,
    abi_version,
    loader_version,
)
from .errors import (
    BadState,
    BufferTooSmall,
    Busy,
    CallError,
    Cancelled,
    Corrupt,
    DependencyFailed,
    DeviceLost,
    Error,
    FatalError,
    Forked,
    Incompatible,
    Internal,
    InvalidArgument,
    InvalidModel,
    IoError,
    LostError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    RetryError,
    Stale,
    TimedOut,
    TypeMismatch,
    Unsupported,
)
from .options import SessionOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

    from .explanation import Explanation, Profile
    from .trace import Trace
    from .typing import SupportsDLPack, Value

__version__ = "0.1.0"
_shared: Environment | None = None
_inherited: list[Environment | None] = []


def environment() -> Environment:
    """The environment that `load`, `devices` and `from_dlpack` share, created by the first call. If a backend has been probed
    already, its library is loaded only when one of its devices is used, so that drivers of unused devices do not start."""
    global _shared
    if _shared is None:
        _shared = Environment(settings={"loader.load": "when_used"})
    return _shared


def _forget_environment() -> None:
    """Called in a forked child, which cannot use the parent's environment. Keeps it, because only the parent may destroy it."""
    global _shared
    _inherited.append(_shared)
    _shared = None


os.register_at_fork(after_in_child=_forget_environment)


def devices() -> list[Device]:
    """The devices of all backends that were found."""
    return environment().devices


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto,
    *,
    directory: str | os.PathLike[str] | None = None,
    weights: Mapping[str, Value] | None = None,
) -> Model:
    """Reads, checks and canonicalizes a model: a path, bytes or an onnx.ModelProto. See `Environment.load`."""
    return environment().load(source, directory=directory, weights=weights)


def from_dlpack(array: SupportsDLPack) -> Array:
    """The memory of another package's array, on the host or on a device, without a copy. See `Environment.from_dlpack`."""
    return environment().from_dlpack(array)


def __getattr__(name: str) -> object:
    # Imported on first use, to keep `import backplane` fast.
    if name in ("Explanation", "Profile"):
        from . import explanation

        return getattr(explanation, name)
    if name == "Trace":
        from .trace import Trace

        return Trace
    if name == "typing":
        import importlib

        return importlib.import_module(".typing", __name__)
    raise AttributeError(f"module 'backplane' has no attribute '{name}'")


__all__ = [
    "Array",
    "BadState",
    "BufferTooSmall",
    "Busy",
    "CallError",
    "Cancel",
    "Cancelled",
    "Candidate",
    "Corrupt",
    "DependencyFailed",
    "Device",
    "DeviceLost",
    "Environment",
    "Error",
    "Explanation",
    "FatalError",
    "Forked",
    "Incompatible",
    "Internal",
    "InvalidArgument",
    "InvalidModel",
    "IoError",
    "LostError",
    "Model",
    "NotFound",
    "PermissionDenied",
    "Profile",
    "ResourceExhausted",
    "RetryError",
    "Run",
    "Session",
    "SessionOptions",
    "Stale",
    "Stream",
    "TimedOut",
    "Trace",
    "TypeMismatch",
    "Unsupported",
    "ValueInfo",
    "abi_version",
    "devices",
    "environment",
    "from_dlpack",
    "load",
    "loader_version",
]
