#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kind of file is it? classify.py MODEL CONFIG FILE...

MODEL and CONFIG are Magika's model.onnx and config.min.json. Files are classified in batches by one bound run, whose batch dimension is set for each
batch.
"""
import json
import pathlib
import sys

import backplane
import numpy

BATCH = 16


def features(path, config):
    """A row of the model's input: the file's first bytes after leading whitespace and its last bytes before trailing whitespace, padded."""
    block = config["block_size"]
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(block).lstrip()[: config["beg_size"]]
        file.seek(max(0, size - block))
        last = file.read(block).rstrip()[-config["end_size"] :]
    row = numpy.full(config["beg_size"] + config["end_size"], config["padding_token"], numpy.int32)
    row[: len(first)] = numpy.frombuffer(first, numpy.uint8)
    row[len(row) - len(last) :] = numpy.frombuffer(last, numpy.uint8)
    return row


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    config = json.loads(pathlib.Path(sys.argv[2]).read_text())
    paths = [pathlib.Path(name) for name in sys.argv[3:]]
    labels = config["target_labels_space"]
    model = backplane.load(sys.argv[1])
    name, result = model.inputs[0].name, model.outputs[0].name
    dimension = model.inputs[0].shape[0]  # a name, or None if the dimension has no name
    rows = numpy.zeros((BATCH, config["beg_size"] + config["end_size"]), numpy.int32)
    scores = numpy.zeros((BATCH, len(labels)), numpy.float32)
    run = model.compile().bind({name: rows}, {result: scores})
    for begin in range(0, len(paths), BATCH):
        batch = paths[begin : begin + BATCH]
        for i, path in enumerate(batch):
            rows[i] = features(path, config)
        if isinstance(dimension, str):
            run.set_dim(dimension, len(batch))  # fewer rows in the last batch
        run()
        for path, score in zip(batch, scores):
            print(f"{path.name:20} {labels[score.argmax()]:12} {score.max():.3f}")


if __name__ == "__main__":
    main()
