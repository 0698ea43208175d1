# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import gc
import os
import time

import numpy
import pytest

import backplane
import models

X = numpy.array([[-1, 0, 1], [2, -3, 4]], numpy.float32)
Y = numpy.maximum(X, 0)


@pytest.fixture(scope="module")
def relu(env: backplane.Environment) -> backplane.Session:
    return env.load(models.relu()).compile(devices="cpu")


@pytest.fixture(scope="module")
def slow(env: backplane.Environment) -> backplane.Session:
    return env.load(models.slow()).compile(devices="cpu")


def test_a_bound_run_is_awaited(relu: backplane.Session) -> None:
    y = numpy.zeros_like(X)
    run = relu.bind({"x": X}, {"y": y})

    async def main() -> None:
        for _ in range(3):
            y[:] = 0
            await run.run_async()
            assert numpy.array_equal(y, Y)

    asyncio.run(main())
    asyncio.run(main())  # another event loop


def test_many_at_once(relu: backplane.Session) -> None:
    async def main() -> list[dict]:
        return await asyncio.gather(*(relu.run_async({"x": X * i}) for i in range(16)))

    for i, results in enumerate(asyncio.run(main())):
        assert numpy.array_equal(results["y"], numpy.maximum(X * i, 0))
    assert numpy.array_equal(relu(X), Y)  # on an exec that an async run used before


def test_idle_execs_are_bounded(env: backplane.Environment) -> None:
    session = env.load(models.slow(2000)).compile(devices="cpu")
    x = numpy.ones((64, 64), numpy.float32)

    async def main() -> None:
        await asyncio.gather(*(session.run_async({"x": x}) for _ in range(most + 12)))

    most = max(4, os.cpu_count() or 1)
    before = len(os.listdir("/proc/self/task"))
    asyncio.run(main())
    assert len(os.listdir("/proc/self/task")) <= before + most + 2  # each exec that awaited a run has a thread


def test_the_loop_goes_on_meanwhile(slow: backplane.Session) -> None:
    async def main() -> None:
        task = asyncio.create_task(slow.run_async({"x": numpy.ones((64, 64), numpy.float32)}, timeout=60))
        for _ in range(5):
            await asyncio.sleep(0.01)
            assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_deadline(slow: backplane.Session) -> None:
    async def main() -> None:
        with pytest.raises(backplane.TimedOut):
            await slow.run_async({"x": numpy.ones((64, 64), numpy.float32)}, timeout=0.05)

    asyncio.run(main())


def test_a_cancelled_task_cancels_its_run(slow: backplane.Session) -> None:
    run = slow.bind({"x": numpy.ones((64, 64), numpy.float32)})

    async def main() -> float:
        task = asyncio.create_task(run.run_async())
        await asyncio.sleep(0.05)
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - start

    assert asyncio.run(main()) < 10
    with pytest.raises(backplane.TimedOut):
        run(timeout=0.02)  # the Run is free again


def test_a_closed_coroutine_cancels_its_run(slow: backplane.Session) -> None:
    run = slow.bind({"x": numpy.ones((64, 64), numpy.float32)})

    async def main() -> float:
        awaited = run.run_async()
        awaited.send(None)  # starts the run
        start = time.monotonic()
        awaited.close()
        return time.monotonic() - start

    assert asyncio.run(main()) < 10
    with pytest.raises(backplane.TimedOut):
        run(timeout=0.02)  # the Run is free again


def test_wait_for(slow: backplane.Session) -> None:
    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow.run_async({"x": numpy.ones((64, 64), numpy.float32)}), 0.05)

    asyncio.run(main())


def test_one_run_at_a_time(slow: backplane.Session) -> None:
    run = slow.bind({"x": numpy.ones((64, 64), numpy.float32)})

    async def main() -> None:
        task = asyncio.create_task(run.run_async(timeout=60))
        await asyncio.sleep(0)  # the task starts the run
        with pytest.raises(backplane.Busy):
            await run.run_async(timeout=60)
        with pytest.raises(backplane.Busy):
            run(timeout=60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_failures_are_raised(relu: backplane.Session) -> None:
    async def main() -> None:
        with pytest.raises(backplane.BadState):
            await relu.bind().run_async()
        with pytest.raises(backplane.TypeMismatch):
            await relu.run_async({"x": X.astype(numpy.float64)})
        assert numpy.array_equal((await relu.run_async({"x": X}))["y"], Y)

    asyncio.run(main())


def test_only_a_run_under_way_is_finished(relu: backplane.Session) -> None:
    run = relu.bind({"x": X})
    for _ in range(2):
        with pytest.raises(backplane.BadState, match="no run is under way"):
            run._finish()
        asyncio.run(run.run_async())


def test_a_run_that_is_dropped_is_waited_for(env: backplane.Environment) -> None:
    """An event loop ends while a run is in flight: the run's memory is released after the run has ended."""
    session = env.load(models.slow(200000)).compile(devices="cpu")

    async def main() -> None:
        session.bind({"x": numpy.ones((64, 64), numpy.float32)})._submit(0.2, None)

    asyncio.run(main())
    gc.collect()
