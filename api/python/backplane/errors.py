# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package: one class for each family of the ABI's status codes, and one derived class for each
code. `Error.code` is the code's number, `Error.status` its name ("BP_INVALID_MODEL")."""

from __future__ import annotations


class Error(Exception):
    """A call of the loader that failed. `str(error)` is one line that names the object, the value seen and the remedy."""

    code: int = 0
    """The ABI's number of the status, see `backplane/status.h`."""
    status: str = ""
    """The name of that number: "BP_NOT_FOUND"."""
    node: int | None = None
    """The id in the model of the node that failed, if a node caused the failure."""
    vendor_code: int = 0
    """The driver's own code, or 0."""
    device_lost: bool = False
    """Every object of the device is lost, not only this one."""
    abandoned: bool = False
    """A device did not finish a run: memory bound to the run must stay allocated."""


class CallError(Error):
    """The call is wrong: the same call will fail again."""


class RetryError(Error):
    """Nothing is broken, unless `abandoned` is set: the same call may succeed later."""


class LostError(Error):
    """The object is lost: create another one and try again."""


class FatalError(Error):
    """A defect, or an environment that no call can repair."""


class InvalidArgument(CallError, ValueError):
    """An argument breaks a rule of the call."""


class InvalidModel(CallError, ValueError):
    """The model breaks ONNX's rules."""


class Unsupported(CallError):
    """Valid, but not supported here. For a node that no device supports, the text has the reason of each device."""


class NotFound(CallError, LookupError):
    """No file, device, option, dimension, weight, input or output of that name."""


class BufferTooSmall(CallError):
    """Bound memory is too small for the result."""


class BadState(CallError):
    """The object's state does not allow the call: for example, an input is not bound. The text says why."""


class TypeMismatch(CallError, TypeError):
    """Data type, rank or extents differ from what the model declares."""


class PermissionDenied(CallError, PermissionError):
    """The system or the user's policy forbids it."""


class ResourceExhausted(RetryError, MemoryError):
    """Memory, instances or handles are used up."""


class TimedOut(RetryError, TimeoutError):
    """The timeout passed."""


class Cancelled(RetryError):
    """The call was cancelled."""


class Busy(RetryError):
    """Another call or run uses the object, or an output of its last run is still in use."""


class DependencyFailed(RetryError):
    """A run that this one waited for failed: run that one again first."""


class DeviceLost(LostError):
    """The device or its driver is gone."""


class Forked(LostError):
    """The process was forked from the one that created the object: create an environment in this process."""


class Stale(LostError):
    """A cache entry or handle belongs to an older build, driver or graph."""


class Internal(FatalError, RuntimeError):
    """A defect in the loader or in a backend."""


class Incompatible(FatalError, ImportError):
    """No common ABI version, or a build for another architecture or with another sanitizer."""


class Corrupt(FatalError):
    """Stored data does not match its checksum or format."""


class IoError(FatalError, OSError):
    """The file system or the network failed."""


_CODES: dict[int, type[Error]] = {
    0x0101: InvalidArgument,
    0x0102: InvalidModel,
    0x0103: Unsupported,
    0x0104: NotFound,
    0x0105: BufferTooSmall,
    0x0106: BadState,
    0x0107: TypeMismatch,
    0x0108: PermissionDenied,
    0x0201: ResourceExhausted,
    0x0202: TimedOut,
    0x0203: Cancelled,
    0x0204: Busy,
    0x0205: DependencyFailed,
    0x0301: DeviceLost,
    0x0303: Forked,
    0x0304: Stale,
    0x0401: Internal,
    0x0402: Incompatible,
    0x0403: Corrupt,
    0x0404: IoError,
}
_FAMILIES: dict[int, type[Error]] = {0x0100: CallError, 0x0200: RetryError, 0x0300: LostError, 0x0400: FatalError}


# Texts of the loader that name parts of the C API, and what replaces them in Python. If one begins with another, the longer comes first.
_IN_PYTHON = (
    ("call bp_exec_bind_container", "pass it to Session.run() or Run.bind()"),
    ("call bp_exec_bind first", "pass it to Run.bind() first"),
    ("call bp_exec_bind", "pass it to Session.run() or Run.bind()"),
    ("call bp_exec_run first", "call run() first"),
    ("call bp_trace_start first", "enter the block of Environment.trace() first"),
    ("copy it with bp_memory_copy", "copy it with Array.numpy()"),
    ("BP_SESSION_PLACE_ONLY", "place_only=True"),
    ("BP_SESSION_REFIT", "refit=True"),
    (" (BP_BUFFER_READ_ONLY)", ""),
)


def _printable(text: str) -> str:
    """The text with escapes for characters that act on a terminal. Names of a model, or a plugin's words, may contain them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def make_error(
    code: int,
    status: str,
    text: str,
    node: int | None = None,
    vendor_code: int = 0,
    device_lost: bool = False,
    abandoned: bool = False,
) -> Error:
    """The exception of a status. For a code that this version does not know, it is of the class of the code's family."""
    for words, ours in _IN_PYTHON:
        text = text.replace(words, ours)
    text = _printable(text)
    error = _CODES.get(code, _FAMILIES.get(code & 0xFF00, Error))(text)
    error.code, error.status, error.node = code, status, node
    error.vendor_code, error.device_lost, error.abandoned = vendor_code, device_lost, abandoned
    return error
