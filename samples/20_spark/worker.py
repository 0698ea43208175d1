# SPDX-License-Identifier: Apache-2.0
"""The code that runs in Spark's Python workers. It is a separate module, sent to the workers by addPyFile. Functions of the main program would be
copied for each task, together with their globals, such as the loaded model."""
import os
import pathlib

import numpy
import pyarrow
import pyarrow.compute

WIDTH, BATCH = 64, 512
_run = None  # this worker's bound run


def prepared(model):
    """The bound run of this worker. Its first batch creates it; all its partitions use it."""
    global _run
    if _run is None:
        import backplane
        environment = backplane.Environment(threads=1)  # an executor has one core here
        session = environment.load(model).compile(dims={"batch": (1, BATCH)}, devices=["cpu"])
        x, y = numpy.zeros((BATCH, WIDTH), numpy.float32), numpy.zeros((BATCH, 4), numpy.float32)
        _run = session.bind({"x": x}, {"y": y}), x, y
    return _run


def infer(model, marker):
    """The function that Spark runs: Arrow batches in, Arrow batches out."""

    def over(batches):
        if marker and not os.path.exists(marker):  # the first worker to get here crashes, as a driver could
            pathlib.Path(marker).touch()
            os.abort()
        run, x, y = prepared(model)
        for batch in batches:
            ids, features = batch.column("id"), batch.column("features")
            good = pyarrow.compute.equal(pyarrow.compute.list_value_length(features), WIDTH).fill_null(False)
            rows = features.filter(good).flatten().to_numpy(zero_copy_only=True).reshape(-1, WIDTH)
            results = numpy.full((len(batch), 4), numpy.nan, numpy.float32)
            places = numpy.flatnonzero(numpy.asarray(good))
            for begin in range(0, len(rows), BATCH):
                part = rows[begin : begin + BATCH]
                x[: len(part)] = part
                run.set_dim("batch", len(part))
                run()
                results[places[begin : begin + len(part)]] = y[: len(part)]
            offsets = numpy.arange(0, results.size + 1, results.shape[1], dtype=numpy.int32)
            lists = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(results.reshape(-1)))
            none = pyarrow.nulls(len(batch), pyarrow.string())
            errors = pyarrow.compute.if_else(good, none, f"the row does not have {WIDTH} features")
            yield pyarrow.RecordBatch.from_arrays([ids, lists, errors], ["id", "y", "error"])

    return over
