# SPDX-License-Identifier: Apache-2.0
"""The code that runs in Spark's Python workers. It is a separate module, sent to the workers by addPyFile. Functions of the main program would be
copied for each task, together with their globals, such as the loaded model."""
import os
import pathlib

import numpy
import pyarrow
import pyarrow.compute

WIDTH, BATCH = 64, 512
_run = None  # this worker's bound run and its arrays


def prepare(model):
    """Creates the bound run of this worker, which all its partitions use, if there is none yet."""
    global _run
    if _run is None:
        import backplane
        environment = backplane.Environment(threads=1)  # an executor has one core here
        session = environment.load(model).compile(dims={"batch": (1, BATCH)}, devices=["cpu"])
        x, y = numpy.zeros((BATCH, WIDTH), numpy.float32), numpy.zeros((BATCH, 4), numpy.float32)
        _run = session.bind({"x": x}, {"y": y}), x, y


def compute(rows, results, reasons, places):
    """Runs rows, at most BATCH of them, and writes each result to its place in `results`. For a row that the model refuses, the reason
    is written to `reasons` instead; a batch that is refused is halved until the row is found."""
    import backplane
    run, x, y = _run
    x[: len(rows)] = rows
    run.set_dim("batch", len(rows))
    try:
        run()
    except backplane.CallError as refused:
        if len(rows) == 1:
            reasons[places[0]] = str(refused)
            return
        half = len(rows) // 2
        compute(rows[:half], results, reasons, places[:half])
        compute(rows[half:], results, reasons, places[half:])
    else:
        results[places] = y[: len(rows)]


def infer_batch(batch):
    """The result of one Arrow batch."""
    ids, features = batch.column("id"), batch.column("features")
    reasons = numpy.full(len(batch), None, object)
    lengths = pyarrow.compute.list_value_length(features).fill_null(0).to_numpy(zero_copy_only=False)
    reasons[lengths != WIDTH] = f"the row does not have {WIDTH} features"
    missing = pyarrow.compute.list_flatten(features).is_null().to_numpy(zero_copy_only=False)
    reasons[pyarrow.compute.list_parent_indices(features).to_numpy()[missing]] = "a feature is null"
    places = numpy.flatnonzero(reasons == None)  # noqa: E711 (element by element)
    rows = features.take(pyarrow.array(places)).flatten().to_numpy(zero_copy_only=True).reshape(-1, WIDTH)
    results = numpy.full((len(batch), 4), numpy.nan, numpy.float32)
    for begin in range(0, len(rows), BATCH):
        compute(rows[begin : begin + BATCH], results, reasons, places[begin : begin + BATCH])
    offsets = numpy.arange(0, results.size + 1, results.shape[1], dtype=numpy.int32)
    lists = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(results.reshape(-1)))
    return pyarrow.RecordBatch.from_arrays([ids, lists, pyarrow.array(reasons, pyarrow.string())], ["id", "y", "error"])


def infer(model, marker):
    """The function for mapInArrow: Arrow batches in, Arrow batches out."""

    def over(batches):
        if marker and not os.path.exists(marker):  # the first worker to get here crashes, as a driver's defect could make it
            pathlib.Path(marker).touch()
            os.abort()
        prepare(model)
        yield from map(infer_batch, batches)

    return over


def infer_frames(model):
    """The same for mapInPandas: data frames in, data frames out."""

    def over(frames):
        prepare(model)
        schema = pyarrow.schema([("id", pyarrow.int64()), ("features", pyarrow.list_(pyarrow.float32()))])
        for frame in frames:
            yield infer_batch(pyarrow.RecordBatch.from_pandas(frame, schema, preserve_index=False)).to_pandas()

    return over
