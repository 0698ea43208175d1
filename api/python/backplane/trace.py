# SPDX-License-Identifier: Apache-2.0
"""A timeline of what sessions do."""

from __future__ import annotations

import os
import threading

from .errors import make_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._core import Environment

_BAD_STATE = 0x0106
_lock = threading.Lock()
_running: dict[int, Trace] = {}  # by the address of the environment, which the trace keeps


def _name(trace: Trace) -> str:
    return "a trace" if trace._path is None else f"the trace '{os.fspath(trace._path)}'"


class Trace:
    """Collects spans of all sessions of an environment within a `with` block; made by `Environment.trace`.

    with backplane.environment().trace("trace.json"):
        session.run(inputs)

    The file is for ui.perfetto.dev or chrome://tracing. An environment has one trace at a time: a second one raises BadState.
    """

    def __init__(self, environment: Environment, path: str | os.PathLike[str] | None = None) -> None:
        self._environment = environment
        if path is not None and "\0" in os.fsdecode(path):
            raise ValueError(f"path is {path!r}: a path cannot have a null character")
        self._path = path
        self.text: str | None = None
        """The collected spans as Chrome/Perfetto JSON, after the block."""

    @property
    def events(self) -> list[dict[str, Any]]:
        """The spans as dicts, after the block."""
        import json

        if self.text is None:
            raise RuntimeError("the trace has not ended: read its events after the with block")
        trace = json.loads(self.text)
        events: list[dict[str, Any]] = trace["traceEvents"] if isinstance(trace, dict) else trace
        return events

    def __enter__(self) -> Trace:
        with _lock:
            other = _running.get(id(self._environment))
            if other is not None:
                text = f"the environment has one trace at a time, and {_name(other)} has not ended: leave its with block first"
                raise make_error(_BAD_STATE, "BP_BAD_STATE", text)
            self._environment._start_trace()
            _running[id(self._environment)] = self
        return self

    def __exit__(self, *exception: object) -> None:
        with _lock:
            del _running[id(self._environment)]
            self.text = self._environment._stop_trace()
        if self._path is not None:
            with open(self._path, "w", encoding="utf-8") as file:
                file.write(self.text)
