# SPDX-License-Identifier: Apache-2.0
"""Runs that asyncio awaits. The loader reports the end of a run through a descriptor that the event loop watches. So the loop does
not block while the model runs, and the loader's threads need no interpreter lock."""

from __future__ import annotations

import asyncio
import contextlib

from ._core import Cancel
from .errors import Cancelled, Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy

    from ._core import Run, Session
    from .typing import Value


async def run_bound(run: Run, timeout: float | None = None) -> None:
    """Implements `Run.run_async`. Cancelling the task cancels the run. The task ends when the run has ended and no longer uses its memory."""
    loop = asyncio.get_running_loop()
    cancel = Cancel()
    ended = asyncio.Event()
    event = run._submit(timeout, cancel)
    cancelled: asyncio.CancelledError | None = None
    try:
        loop.add_reader(event, ended.set)
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError as request:
                cancelled = request
                cancel.set()
    except BaseException:  # GeneratorExit, if the coroutine is closed or collected: nothing can be awaited any more
        cancel.set()
        with contextlib.suppress(Error):
            run._finish()
        raise
    finally:
        loop.remove_reader(event)
    if cancelled is None:
        run._finish()
        return
    with contextlib.suppress(Cancelled):
        run._finish()
    raise cancelled


async def run_session(
    session: Session,
    inputs: Mapping[str, Value],
    outputs: str | Sequence[str] | None = None,
    timeout: float | None = None,
) -> dict[str, numpy.ndarray]:
    """Implements `Session.run_async`."""
    run = session._take()
    run._bind_copies(inputs)
    await run_bound(run, timeout)
    results = run.copy_outputs(outputs)
    run._give_back()
    return results
