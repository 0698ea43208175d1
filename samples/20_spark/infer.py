#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model on a DataFrame: infer.py MODEL [--rows N] [--passes N] [--executors N] [--pandas] [--kill]

Each Python worker of an executor loads the model once and keeps it; compiled programs come from a cache that all workers share. Arrow's rows are
copied to the memory bound to the run without becoming Python objects. A row that does not fit the model is kept, with the reason in `error`; a worker
that dies is replaced by Spark, and its partition runs again. The result is compared with NumPy's and with that of a single process.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import numpy
import pyarrow
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from worker import BATCH, WIDTH, infer, infer_frames

PARTITIONS = 16  # the same for any number of executors, so that rates can be compared
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}


def single_process(model, count):
    """Runs the same rows in this process, by the workers' function. Returns the result as a table, and the rows per second."""
    batches = []
    for begin in range(0, count, 4 * BATCH):
        ids = range(begin, min(begin + 4 * BATCH, count))
        features = [[(i + j) % 7 for j in range(WIDTH - (i % 1000 == 999))] for i in ids]
        batches.append(pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(ids, pyarrow.int64()), pyarrow.array(features, pyarrow.list_(pyarrow.float32()))], ["id", "features"]))
    over = infer(model, None)
    list(over(batches[:1]))  # compiles
    start = time.perf_counter()
    results = list(over(batches))
    return pyarrow.Table.from_batches(results), count / (time.perf_counter() - start)


def difference(one, other):
    """The greatest difference between two results, whose rows must agree in id and error, and in values within the tolerance."""
    for name in ("id", "error"):
        if one.column(name).to_pylist() != other.column(name).to_pylist():
            raise SystemExit(f"the column '{name}' of Spark's result differs from the result of a single process")
    values, expected = (numpy.array(table.column("y").to_pylist(), numpy.float32) for table in (one, other))
    if not numpy.allclose(values, expected, **TOLERANCE, equal_nan=True):
        raise SystemExit("the column 'y' of Spark's result differs from the result of a single process by more than the tolerance")
    return float(numpy.nanmax(abs(values - expected)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--passes", type=int, default=1, help="how often the rows run after the first time; the fastest counts (1)")
    parser.add_argument("--executors", type=int, default=1)
    parser.add_argument("--pandas", action="store_true", help="give the workers Pandas' data frames instead of Arrow's batches")
    parser.add_argument("--kill", action="store_true", help="make one worker crash during the run")
    options = parser.parse_args()
    work = tempfile.TemporaryDirectory()
    marker = work.name + "/crashed" if options.kill else None
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_WORKER_DIR=work.name)
    path = os.pathsep.join(os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder)
    # Each executor is a separate process with one core.
    spark = (SparkSession.builder.master(f"local-cluster[{options.executors},1,1024]").appName("backplane")
             .config("spark.ui.enabled", "false").config("spark.sql.execution.arrow.maxRecordsPerBatch", str(4 * BATCH))
             .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
             .config("spark.executorEnv.PYTHONPATH", path).config("spark.executorEnv.OMP_NUM_THREADS", "1")
             .config("spark.driver.host", "127.0.0.1").config("spark.python.worker.faulthandler.enabled", "false").getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    spark.sparkContext.addPyFile(str(pathlib.Path(__file__).with_name("worker.py")))
    # Row i has the features (i + j) mod 7; every thousandth row has one feature too few.
    spark.range(0, options.rows, numPartitions=PARTITIONS).withColumn(
        "features", f.expr(f"transform(sequence(0, {WIDTH - 1} - if(id % 1000 = 999, 1, 0)), j -> cast((id + j) % 7 as float))")
    ).write.parquet(work.name + "/rows")
    rows = spark.read.parquet(work.name + "/rows")
    schema = "id long, y array<float>, error string"
    seconds = float("inf")
    # During the first pass, Java's compiler takes as much time as the model. With --kill, there is no other pass.
    for _ in range(1 if options.kill else 1 + options.passes):
        start = time.perf_counter()
        mapped = rows.mapInPandas(infer_frames(options.model), schema) if options.pandas else rows.mapInArrow(infer(options.model, marker), schema)
        result = mapped.toArrow()
        seconds = min(seconds, time.perf_counter() - start)
    result = result.sort_by("id")  # here, because a sort in Spark would run the model twice: once more to choose the ranges of the sort
    spark.stop()
    expected = numpy.load(pathlib.Path(options.model).with_suffix(".npy"))  # NumPy's results, for ids modulo 7
    errors = 0
    for id_, y, error in zip(*(result.column(name).to_pylist() for name in ("id", "y", "error"))):
        if (error is None) == (id_ % 1000 == 999) or (error is None and not numpy.allclose(y, expected[id_ % 7], **TOLERANCE)):
            raise SystemExit(f"row {id_} is wrong: {y}, {error}")
        errors += error is not None
    if options.kill and not os.path.exists(marker):
        raise SystemExit("no worker crashed")
    single, single_rate = single_process(options.model, options.rows)
    print(json.dumps({"rows": len(result), "errors": errors, "executors": options.executors, "seconds": round(seconds, 2),
                      "rows_per_second": round(len(result) / seconds), "survived": bool(options.kill),
                      "single_process": round(single_rate), "difference": difference(result, single)}))


if __name__ == "__main__":
    main()
