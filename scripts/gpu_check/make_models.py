#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_models.py FOLDER [--tiny]: the models of gpu_check, without their weights, and models.json with what a run of each computes and reads.

All weights of a model lie in one external file, weights32.bin or weights16.bin, which check.py makes where the models run: a few kilobytes
of model travel instead of hundreds of megabytes. Every weight begins at its own offset in that file, so that no two are equal. --tiny makes
small models of the same kinds, for a stand-in.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, shape_inference

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data"))
import make_bench
from make_networks import Builder

BATCHES = (1, 32)
ALIGNMENT = 4096


class Weightless(Builder):
    """A Builder whose weights are ranges of a file. `dtype` is that of all floating-point values."""

    def __init__(self, name, dtype):
        super().__init__(name)
        self.dtype, self.end = dtype, 0
        self.width = 2 if dtype == TensorProto.FLOAT16 else 4

    def weight(self, *shape):
        name, size = self.fresh("w"), int(np.prod(shape)) * self.width
        tensor = TensorProto(name=name, data_type=self.dtype, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", f"weights{8 * self.width}.bin"), ("offset", self.end), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        self.weights.append(tensor)
        self.end += -(-size // ALIGNMENT) * ALIGNMENT
        return name

    def vector(self, n, mean=0.0):
        return self.weight(n)

    def number(self, value):
        return self.constant(np.array(value, helper.tensor_dtype_to_np_dtype(self.dtype)))


def resnet50(b, tiny):
    """ResNet-50 for 224 x 224 pictures."""
    side, stages = (32, (1, 1)) if tiny else (224, (3, 4, 6, 3))
    x, width = make_bench.residual(b, b.input("x", b.dtype, ["batch", 3, side, side]), stages)
    x = b.Flatten(b.GlobalAveragePool(x), axis=1)
    b.output(b.linear(x, width, 1000), "y", b.dtype, ["batch", 1000])


def encoder(b, tiny):
    """The layers of BERT-base over 128 embedded tokens."""
    layers, width, heads, tokens = (1, 64, 4, 16) if tiny else (12, 768, 12, 128)
    x = b.input("x", b.dtype, ["batch", tokens, width])
    for _ in range(layers):
        x = b.encoder_layer(x, width, heads)
    b.output(x, "y", b.dtype, ["batch", tokens, width])


def vit(b, tiny):
    """ViT-B/16 for 224 x 224 pictures, without the class token: the mean of the patches is classified."""
    layers, width, heads, side, patch = (1, 64, 4, 32, 8) if tiny else (12, 768, 12, 224, 16)
    x = b.input("x", b.dtype, ["batch", 3, side, side])
    x = b.Conv(x, b.weight(width, 3, patch, patch), b.vector(width), kernel_shape=[patch] * 2, strides=[patch] * 2)
    x = b.Transpose(b.Reshape(x, b.ints(0, width, -1)), perm=[0, 2, 1])
    x = b.Add(x, b.weight(1, (side // patch) ** 2, width))
    for _ in range(layers):
        x = b.encoder_layer(x, width, heads, norm_first=True)
    x = b.ReduceMean(b.layer_norm(x, width), axes=[1], keepdims=0)
    b.output(b.linear(x, width, 1000), "y", b.dtype, ["batch", 1000])


def decoder(b, tiny):
    """One step of four layers as in Llama (RMS norm, SwiGLU, no biases), with 1,024 keys and values in the cache."""
    layers, width, heads, inner, past = (1, 64, 4, 128, 8) if tiny else (4, 4096, 32, 11008, 1024)
    size = width // heads
    x = b.input("x", b.dtype, ["batch", 1, width])

    def norm(x):
        mean = b.ReduceMean(b.Mul(x, x), axes=[-1], keepdims=1)
        return b.Mul(b.Div(x, b.Sqrt(b.Add(mean, b.number(1e-5)))), b.vector(width))

    for layer in range(layers):
        h = norm(x)
        q, k, v = (b.heads(b.MatMul(h, b.weight(width, width)), heads, size) for _ in range(3))
        for kind, new in (("key", k), ("value", v)):
            old = b.input(f"past_{kind}_{layer}", b.dtype, ["batch", heads, past, size])
            both = b.Concat(old, new, axis=2)
            b.output(both, f"present_{kind}_{layer}", b.dtype, ["batch", heads, past + 1, size])
            k, v = (both, v) if kind == "key" else (k, both)
        mixed = b.Transpose(b.attend(q, b.Transpose(k, perm=[0, 1, 3, 2]), v, size, None), perm=[0, 2, 1, 3])
        x = b.Add(x, b.MatMul(b.Reshape(mixed, b.ints(0, -1, width)), b.weight(width, width)))
        h = norm(x)
        gate = b.MatMul(h, b.weight(width, inner))
        x = b.Add(x, b.MatMul(b.Mul(b.Mul(gate, b.Sigmoid(gate)), b.MatMul(h, b.weight(width, inner))), b.weight(inner, width)))
    b.output(x, "y", b.dtype, ["batch", 1, width])


MODELS = {"resnet50": resnet50, "bert_base": encoder, "vit_b16": vit, "decoder_step": decoder}


def operations(model, batch):
    """Two for each multiplication of a Conv or a MatMul in a run."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for info in copy.graph.input:
        info.type.tensor_type.shape.dim[0].dim_value = batch
    for info in copy.graph.output:
        info.type.tensor_type.ClearField("shape")
    graph = shape_inference.infer_shapes(copy, data_prop=True).graph
    shapes = {info.name: [d.dim_value for d in info.type.tensor_type.shape.dim] for info in (*graph.value_info, *graph.input, *graph.output)}
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    total = 0
    for node in graph.node:
        if node.op_type in ("Conv", "MatMul"):
            out, given = shapes[node.output[0]], shapes[node.input[1 if node.op_type == "Conv" else 0]]
            total += 2 * int(np.prod(out)) * (int(np.prod(given[1:])) if node.op_type == "Conv" else given[-1])
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    known = {}
    for name, build in MODELS.items():
        for dtype, suffix in ((TensorProto.FLOAT, "fp32"), (TensorProto.FLOAT16, "fp16")):
            b = Weightless(name, dtype)
            build(b, options.tiny)
            model = b.model()
            (options.folder / f"{name}_{suffix}.onnx").write_bytes(model.SerializeToString())
            weights = sum(int(np.prod(tensor.dims)) * b.width for tensor in b.weights)
            caches = sum(int(np.prod([d.dim_value for d in info.type.tensor_type.shape.dim][1:])) * b.width for info in model.graph.input[1:])
            known[f"{name}_{suffix}"] = {"operations": {batch: operations(model, batch) for batch in BATCHES}, "weight_bytes": weights,
                                         "cache_bytes_per_batch": caches, "file_bytes": b.end}
    (options.folder / "models.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
