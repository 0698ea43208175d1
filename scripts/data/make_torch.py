# SPDX-License-Identifier: Apache-2.0
"""A scripted module with a while loop, a list and an if, as torch.onnx writes them: Loop, a sequence, If.

    make_torch.py DATA

Writes exports/torch/model.onnx and its inputs; make_exports.py adds the expected outputs. Runs in a Python that has torch, which is not
the one of $BACKPLANE_DATA/venv.
"""
import pathlib
import sys
from typing import List

import numpy
import torch

WIDTH, WORDS = 16, 12


class Decoder(torch.nn.Module):
    """Says words until it says word 0 or may say no more: a gated cell, whose next input is its own best word."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.update = torch.nn.Linear(2 * WIDTH, WIDTH)
        self.candidate = torch.nn.Linear(2 * WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, WORDS)
        rng = numpy.random.default_rng(5)
        for parameter in self.parameters():
            parameter.data = torch.from_numpy(rng.standard_normal(parameter.shape).astype("float32") / 2)

    def forward(self, state, word, limit):
        said: List[torch.Tensor] = []
        spoken = 0
        while spoken < int(limit) and bool(word != 0):
            both = torch.cat([self.embedding(word), state], 1)
            gate = torch.sigmoid(self.update(both))
            state = gate * state + (1 - gate) * torch.tanh(self.candidate(both))
            scores = self.head(state)
            word = torch.argmax(scores, 1)
            said.append(scores)
            spoken += 1
        if spoken > 3:
            last = torch.softmax(state, 1)
        else:
            last = -state
        return torch.cat(said, 0), last, word


def main():
    folder = pathlib.Path(sys.argv[1]) / "exports/torch"
    folder.mkdir(parents=True, exist_ok=True)
    state = numpy.random.default_rng(6).standard_normal((1, WIDTH)).astype("float32")
    inputs = {"state": state, "word": numpy.array([3]), "limit": numpy.array(9)}
    example = tuple(torch.from_numpy(value) for value in inputs.values())
    model = torch.jit.script(Decoder().eval())
    options = {"dynamo": False} if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 5) else {}
    torch.onnx.export(model, example, str(folder / "model.onnx"), opset_version=16, input_names=list(inputs), output_names=["scores", "last", "end"], **options)
    for i, value in enumerate(inputs.values()):
        numpy.save(folder / f"input_{i}.npy", value)


if __name__ == "__main__":
    main()
