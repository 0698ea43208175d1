# SPDX-License-Identifier: Apache-2.0
"""The larger models of scripts/bench.sh, with seeded weights: two encoders, and two networks quantized by onnxruntime.

    make_bench.py DATA [NAME…]

Writes bench/<name>/ as the other scripts do: model.onnx, input_<i>.npy, output_<i>.npy. Takes about 0.7 GB.
"""
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto

import reference
from make_networks import Builder, save


def encoder(name, layers, width, heads, words):
    """A BERT encoder of 128 tokens, as exporters write it."""
    b = Builder(name)
    ids = b.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    mask = b.input("attention_mask", TensorProto.INT64, ["batch", "sequence"])
    x = b.Add(b.Gather(b.weight(words, width), ids), b.weight(1, 128, width))
    x = b.layer_norm(x, width)
    inverse = b.Sub(b.number(1), b.Cast(b.Unsqueeze(mask, b.ints(1, 2)), to=TensorProto.FLOAT))
    bias = b.Mul(inverse, b.number(-10000))
    for _ in range(layers):
        x = b.encoder_layer(x, width, heads, bias)
    b.output(x, "last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", width])
    return b, [b.rng.integers(0, words, (1, 128)), np.ones((1, 128), np.int64)]


def convolution(b, x, ins, outs, kernel, stride=1, group=1, relu="Relu"):
    x = b.Conv(x, b.weight(outs, ins // group, kernel, kernel), b.vector(outs), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)
    if relu == "Clip":
        return b.Clip(x, b.number(0), b.number(6))
    return b.Relu(x) if relu else x


def head(b, x, width):
    x = b.Flatten(b.GlobalAveragePool(x), axis=1)
    b.output(b.Gemm(x, b.weight(1000, width), b.vector(1000), transB=1), "logits", TensorProto.FLOAT, [1, 1000])
    return b, [b.rng.standard_normal((1, 3, 224, 224)).astype(np.float32)]


def residual(b, x, stages):
    """A ResNet of bottlenecks up to its head: the number of blocks in each stage. Returns the result and its channels."""
    x = convolution(b, x, 3, 64, 7, 2)
    x, width = b.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for stage, blocks in enumerate(stages):
        inner = 64 << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            shortcut = x if block > 0 else convolution(b, x, width, 4 * inner, 1, stride, relu=None)
            h = convolution(b, convolution(b, x, width, inner, 1), inner, inner, 3, stride)
            x, width = b.Relu(b.Add(convolution(b, h, inner, 4 * inner, 1, relu=None), shortcut)), 4 * inner
    return x, width


def resnet50(name):
    b = Builder(name)
    return head(b, *residual(b, b.input("input", TensorProto.FLOAT, [1, 3, 224, 224]), (3, 4, 6, 3)))


def mobilenet(name):
    b = Builder(name)
    x, width = convolution(b, b.input("input", TensorProto.FLOAT, [1, 3, 224, 224]), 3, 32, 3, 2, relu="Clip"), 32
    for expansion, outs, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeats):
            step, inner = stride if i == 0 else 1, width * expansion
            h = convolution(b, x, width, inner, 1, relu="Clip") if expansion > 1 else x
            h = convolution(b, convolution(b, h, inner, inner, 3, step, inner, relu="Clip"), inner, outs, 1, relu=None)
            x, width = (b.Add(x, h) if step == 1 and width == outs else h), outs
    return head(b, convolution(b, x, width, 1280, 1, relu="Clip"), 1280)


class Calibration:
    """A few random pictures."""

    def __init__(self, rng):
        self.left = [{"input": rng.standard_normal((1, 3, 224, 224)).astype(np.float32)} for _ in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantized(build):
    def make(name):
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

        builder, inputs = build(name)
        with tempfile.TemporaryDirectory() as scratch:
            plain, result = pathlib.Path(scratch) / "plain.onnx", pathlib.Path(scratch) / "int8.onnx"
            onnx.save(builder.model(), plain)
            quantize_static(plain, result, Calibration(builder.rng), quant_format=QuantFormat.QDQ, per_channel=True,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
            return onnx.load(result), inputs
    return make


def plain(build, *sizes):
    def make(name):
        builder, inputs = build(name, *sizes)
        return builder.model(), inputs
    return make


MODELS = {
    "bert_base": plain(encoder, 12, 768, 12, 30522),
    "minilm6": plain(encoder, 6, 384, 12, 30522),
    "resnet50_int8": quantized(resnet50),
    "mobilenet_int8": quantized(mobilenet),
}


def main():
    data, *names = sys.argv[1:]
    for name in names or MODELS:
        model, inputs = MODELS[name](name)
        save(pathlib.Path(data) / "bench" / name, model, inputs)


if __name__ == "__main__":
    main()
