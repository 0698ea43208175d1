# SPDX-License-Identifier: Apache-2.0
"""Rows that the model cannot take are kept with their reasons, and the other rows of their batch have results."""
import numpy
import pyarrow
import worker


class Run:
    """Instead of a bound run: refuses every batch that has a 13."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def set_dim(self, name, count):
        self.count = count

    def __call__(self):
        import backplane
        if 13 in self.x[: self.count]:
            raise backplane.InvalidArgument("13 is refused")
        self.y[: self.count] = self.x[: self.count, :4]


x, y = numpy.zeros((worker.BATCH, worker.WIDTH), numpy.float32), numpy.zeros((worker.BATCH, 4), numpy.float32)
worker._run = Run(x, y), x, y
rows = [[float(i)] * worker.WIDTH for i in range(600)]
rows[20] = rows[20][1:]
rows[21] = None
rows[22] = [None] + rows[22][1:]
batch = pyarrow.RecordBatch.from_arrays([pyarrow.array(range(600)), pyarrow.array(rows, pyarrow.list_(pyarrow.float32()))], ["id", "features"])
(result,) = worker.infer("", None)([batch])
reasons = {i: text for i, text in enumerate(result.column("error").to_pylist()) if text is not None}
length = f"the row does not have {worker.WIDTH} features"
assert reasons == {13: "13 is refused", 20: length, 21: length, 22: "a feature is null"}, reasons
for i, values in enumerate(result.column("y").to_pylist()):
    assert numpy.array_equal(values, [numpy.nan if i in reasons else i] * 4, equal_nan=True), (i, values)
