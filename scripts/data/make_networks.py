# SPDX-License-Identifier: Apache-2.0
"""Models of the common architectures with seeded weights, each with inputs and the expected outputs.

    make_networks.py DATA

They are built from ONNX's operators as the usual exporters do: small enough for a test, complete enough to have all of the
architecture's operators. Next to each model.onnx are input_<i>.npy and output_<i>.npy, in the order of the model's inputs and outputs.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import reference

OPSET, ML_OPSET = 17, 3


class Builder:
    """A graph that grows by calls: build.MatMul(x, y) adds a node and returns its output's name."""

    def __init__(self, name):
        self.name, self.rng = name, reference.rng("models", name)
        self.nodes, self.weights, self.inputs, self.outputs, self.count = [], [], [], [], 0

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, dtype, shape=None):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, array):
        name = self.fresh("c")
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def number(self, value):
        return self.constant(np.float32(value))

    def weight(self, *shape):
        """Random weights of variance 1 / fan-in, so that activations neither grow nor vanish from layer to layer."""
        fan = shape[0] if len(shape) == 2 else max(1, int(np.prod(shape[1:])))
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32))

    def vector(self, n, mean=0.0):
        return self.constant((mean + 0.1 * self.rng.standard_normal(n)).astype(np.float32))

    def __getattr__(self, op):
        def add(*inputs, outputs=1, domain="", **attributes):
            names = [self.fresh(op) for _ in range(outputs)]
            self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
            return names[0] if outputs == 1 else names

        return add

    # Layers that several models share.
    def linear(self, x, ins, outs):
        return self.Add(self.MatMul(x, self.weight(ins, outs)), self.vector(outs))

    def layer_norm(self, x, width):
        return self.LayerNormalization(x, self.vector(width, 1.0), self.vector(width), axis=-1, epsilon=1e-5)

    def gelu(self, x):
        """0.5 x (1 + erf(x / √2)), in the nodes that exporters write."""
        inner = self.Add(self.Erf(self.Div(x, self.number(np.sqrt(2)))), self.number(1))
        return self.Mul(self.Mul(x, inner), self.number(0.5))

    def heads(self, x, count, size, perm=(0, 2, 1, 3)):
        return self.Transpose(self.Reshape(x, self.ints(0, -1, count, size)), perm=perm)

    def attend(self, q, k, v, size, mask):
        scores = self.Div(self.MatMul(q, k), self.number(np.sqrt(size)))
        weights = self.Softmax(self.Add(scores, mask) if mask else scores, axis=-1)
        return self.MatMul(weights, v)

    def encoder_layer(self, x, width, heads, mask=None, norm_first=False):
        size = width // heads
        inner = self.layer_norm(x, width) if norm_first else x
        q = self.heads(self.linear(inner, width, width), heads, size)
        k = self.heads(self.linear(inner, width, width), heads, size, (0, 2, 3, 1))
        v = self.heads(self.linear(inner, width, width), heads, size)
        mixed = self.Transpose(self.attend(q, k, v, size, mask), perm=[0, 2, 1, 3])
        x = self.Add(x, self.linear(self.Reshape(mixed, self.ints(0, -1, width)), width, width))
        x = x if norm_first else self.layer_norm(x, width)
        inner = self.layer_norm(x, width) if norm_first else x
        x = self.Add(x, self.linear(self.gelu(self.linear(inner, width, 4 * width)), 4 * width, width))
        return x if norm_first else self.layer_norm(x, width)

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="make_networks.py")


def bert():
    """Two post-norm encoder layers over word, position and type embeddings, with an attention mask, and a pooler."""
    b, width, heads, words = Builder("bert"), 64, 4, 300
    ids = b.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    mask = b.input("attention_mask", TensorProto.INT64, ["batch", "sequence"])
    types = b.input("token_type_ids", TensorProto.INT64, ["batch", "sequence"])
    length = b.Gather(b.Shape(ids), b.constant(np.int64(1)), axis=0)
    positions = b.Unsqueeze(b.Range(b.constant(np.int64(0)), length, b.constant(np.int64(1))), b.ints(0))
    x = b.Add(b.Gather(b.weight(words, width), ids), b.Gather(b.weight(2, width), types))
    x = b.layer_norm(b.Add(x, b.Gather(b.weight(48, width), positions)), width)
    inverse = b.Sub(b.number(1), b.Cast(b.Unsqueeze(mask, b.ints(1, 2)), to=TensorProto.FLOAT))
    bias = b.Mul(inverse, b.number(-10000))
    for _ in range(2):
        x = b.encoder_layer(x, width, heads, bias)
    b.output(x, "last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", width])
    first = b.Gather(x, b.constant(np.int64(0)), axis=1)
    b.output(b.Tanh(b.linear(first, width, width)), "pooler_output", TensorProto.FLOAT, ["batch", width])
    lengths = np.array([11, 7])
    return b, [b.rng.integers(0, words, (2, 11)), (np.arange(11) < lengths[:, None]).astype(np.int64), b.rng.integers(0, 2, (2, 11))]


def gpt2():
    """Two pre-norm decoder layers with fused projections; past keys and values come in and go out, one step longer."""
    b, width, heads, words = Builder("gpt2"), 64, 4, 200
    size = width // heads
    ids = b.input("input_ids", TensorProto.INT64, ["batch", "sequence"])
    past = [[b.input(f"past_{kind}.{layer}", TensorProto.FLOAT, ["batch", heads, "past", size]) for kind in ("key", "value")] for layer in range(2)]
    embedding = b.weight(words, width)
    extent = lambda x, axis: b.Gather(b.Shape(x), b.constant(np.int64(axis)), axis=0)
    before, now = extent(past[0][0], 2), extent(ids, 1)
    total = b.Add(before, now)
    positions = b.Range(before, total, b.constant(np.int64(1)))
    x = b.Add(b.Gather(embedding, ids), b.Unsqueeze(b.Gather(b.weight(64, width), positions), b.ints(0)))
    columns = b.Unsqueeze(b.Range(b.constant(np.int64(0)), total, b.constant(np.int64(1))), b.ints(0))
    causal = b.LessOrEqual(columns, b.Unsqueeze(positions, b.ints(1)))
    mask = b.Where(causal, b.number(0), b.number(np.finfo(np.float32).min))
    for layer in range(2):
        qkv = b.linear(b.layer_norm(x, width), width, 3 * width)
        q, k, v = b.Split(qkv, b.ints(width, width, width), outputs=3, axis=2)
        q, k, v = (b.heads(t, heads, size) for t in (q, k, v))
        k, v = (b.Concat(old, new, axis=2) for old, new in zip(past[layer], (k, v)))
        for kind, value in (("key", k), ("value", v)):
            b.output(value, f"present_{kind}.{layer}", TensorProto.FLOAT, ["batch", heads, "total", size])
        mixed = b.Transpose(b.attend(q, b.Transpose(k, perm=[0, 1, 3, 2]), v, size, mask), perm=[0, 2, 1, 3])
        x = b.Add(x, b.linear(b.Reshape(mixed, b.ints(0, -1, width)), width, width))
        h = b.linear(b.layer_norm(x, width), width, 4 * width)
        cube = b.Add(h, b.Mul(b.Pow(h, b.number(3)), b.number(0.044715)))  # GELU by tanh, as GPT-2 has it
        h = b.Mul(b.Mul(h, b.number(0.5)), b.Add(b.Tanh(b.Mul(cube, b.number(np.sqrt(2 / np.pi)))), b.number(1)))
        x = b.Add(x, b.linear(h, 4 * width, width))
    logits = b.MatMul(b.layer_norm(x, width), b.Transpose(embedding, perm=[1, 0]))
    b.output(logits, "logits", TensorProto.FLOAT, ["batch", "sequence", words])
    cache = [b.rng.standard_normal((2, heads, 5, size)).astype(np.float32) for _ in range(4)]
    return b, [b.rng.integers(0, words, (2, 3)), *cache]


def vit():
    """Patches by a convolution, a class token, two pre-norm encoder layers, a head."""
    b, width, heads = Builder("vit"), 64, 4
    picture = b.input("pixel_values", TensorProto.FLOAT, ["batch", 3, 32, 32])
    patches = b.Conv(picture, b.weight(width, 3, 8, 8), b.vector(width), kernel_shape=[8, 8], strides=[8, 8])
    patches = b.Transpose(b.Reshape(patches, b.ints(0, width, -1)), perm=[0, 2, 1])
    batch = b.Slice(b.Shape(picture), b.ints(0), b.ints(1))
    token = b.Expand(b.weight(1, 1, width), b.Concat(batch, b.ints(1, width), axis=0))
    x = b.Add(b.Concat(token, patches, axis=1), b.weight(1, 17, width))
    for _ in range(2):
        x = b.encoder_layer(x, width, heads, norm_first=True)
    first = b.Gather(b.layer_norm(x, width), b.constant(np.int64(0)), axis=1)
    b.output(b.linear(first, width, 10), "logits", TensorProto.FLOAT, ["batch", 10])
    return b, [b.rng.standard_normal((2, 3, 32, 32)).astype(np.float32)]


def mobilenet():
    """MobileNetV2: inverted residuals of pointwise and depthwise convolutions with batch normalization and ReLU6."""
    b = Builder("mobilenet")

    def conv(x, ins, outs, kernel=1, stride=1, group=1, relu=True):
        pad = kernel // 2
        x = b.Conv(x, b.weight(outs, ins // group, kernel, kernel), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)
        x = b.BatchNormalization(x, b.vector(outs, 1.0), b.vector(outs), b.vector(outs), b.constant(b.rng.uniform(0.5, 1.5, outs).astype(np.float32)))
        return b.Clip(x, b.number(0), b.number(6)) if relu else x

    x = conv(b.input("input", TensorProto.FLOAT, ["batch", 3, 64, 64]), 3, 16, 3, 2)
    width = 16
    for expansion, outs, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2), (6, 64, 2, 2)):
        for i in range(repeats):
            step, inner = stride if i == 0 else 1, width * expansion
            h = conv(x, width, inner) if expansion > 1 else x
            h = conv(conv(h, inner, inner, 3, step, inner), inner, outs, relu=False)
            x, width = (b.Add(x, h) if step == 1 and width == outs else h), outs
    x = b.Flatten(b.GlobalAveragePool(conv(x, width, 128)), axis=1)
    b.output(b.Gemm(x, b.weight(10, 128), b.vector(10), transB=1), "logits", TensorProto.FLOAT, ["batch", 10])
    return b, [b.rng.standard_normal((2, 3, 64, 64)).astype(np.float32)]


def unet():
    """The denoiser of a diffusion model: residual blocks conditioned on the time step, self-attention and cross-attention to text embeddings
    at the lowest resolution, and skip connections from the encoder to the decoder."""
    b, width, groups, heads, embedding, words = Builder("unet"), 16, 4, 2, 32, 24

    def conv(x, ins, outs, kernel=3, stride=1):
        return b.Conv(x, b.weight(outs, ins, kernel, kernel), b.vector(outs), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4)

    def silu(x):
        return b.Mul(x, b.Sigmoid(x))

    def group_norm(x, channels):
        """As exporters write it for operator sets before 18: instances of groups, then a scale and a shift for each channel."""
        ones, zeros = b.constant(np.ones(groups, np.float32)), b.constant(np.zeros(groups, np.float32))
        normal = b.Reshape(b.InstanceNormalization(b.Reshape(x, b.ints(0, groups, -1)), ones, zeros, epsilon=1e-5), b.Shape(x))
        scale, shift = (b.constant((mean + 0.1 * b.rng.standard_normal((channels, 1, 1))).astype(np.float32)) for mean in (1, 0))
        return b.Add(b.Mul(normal, scale), shift)

    def residual(x, ins, outs, time):
        h = conv(silu(group_norm(x, ins)), ins, outs)
        h = b.Add(h, b.Unsqueeze(b.Gemm(silu(time), b.weight(outs, embedding), b.vector(outs), transB=1), b.ints(2, 3)))
        h = conv(silu(group_norm(h, outs)), outs, outs)
        return b.Add(x if ins == outs else conv(x, ins, outs, 1), h)

    def attention(x, channels, text):
        """Self-attention of all positions, cross-attention to the text, and a feed-forward of gated GELU."""
        size = channels // heads
        h = b.Reshape(b.Transpose(conv(group_norm(x, channels), channels, channels, 1), perm=[0, 2, 3, 1]), b.ints(0, -1, channels))
        for source, ins in ((None, channels), (text, words)):
            inner = b.layer_norm(h, channels)
            keys = source or inner
            q = b.heads(b.MatMul(inner, b.weight(channels, channels)), heads, size)
            k = b.heads(b.MatMul(keys, b.weight(ins, channels)), heads, size, (0, 2, 3, 1))
            v = b.heads(b.MatMul(keys, b.weight(ins, channels)), heads, size)
            mixed = b.Transpose(b.attend(q, k, v, size, None), perm=[0, 2, 1, 3])
            h = b.Add(h, b.linear(b.Reshape(mixed, b.ints(0, -1, channels)), channels, channels))
        value, gate = b.Split(b.linear(b.layer_norm(h, channels), channels, 8 * channels), b.ints(4 * channels, 4 * channels), outputs=2, axis=-1)
        h = b.Add(h, b.linear(b.Mul(value, b.gelu(gate)), 4 * channels, channels))
        picture = b.Reshape(b.Transpose(h, perm=[0, 2, 1]), b.Shape(x))
        return b.Add(x, conv(picture, channels, channels, 1))

    sample = b.input("sample", TensorProto.FLOAT, ["batch", 4, "height", "width"])
    step = b.input("timestep", TensorProto.INT64, ["batch"])
    text = b.input("encoder_hidden_states", TensorProto.FLOAT, ["batch", "tokens", words])
    rates = b.constant(np.exp(-np.log(1e4) * np.arange(width // 2) / (width // 2)).astype(np.float32)[None])
    angles = b.Mul(b.Unsqueeze(b.Cast(step, to=TensorProto.FLOAT), b.ints(1)), rates)
    time = b.linear(silu(b.linear(b.Concat(b.Cos(angles), b.Sin(angles), axis=-1), width, embedding)), embedding, embedding)
    x = conv(sample, 4, width)
    high = residual(x, width, width, time)
    x = residual(conv(high, width, width, 3, 2), width, 2 * width, time)
    low = attention(x, 2 * width, text)
    x = residual(attention(residual(low, 2 * width, 2 * width, time), 2 * width, text), 2 * width, 2 * width, time)
    x = attention(residual(b.Concat(x, low, axis=1), 4 * width, 2 * width, time), 2 * width, text)
    x = b.Resize(x, "", b.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = residual(b.Concat(conv(x, 2 * width, 2 * width), high, axis=1), 3 * width, width, time)
    b.output(conv(silu(group_norm(x, width)), width, 4), "out_sample", TensorProto.FLOAT, ["batch", 4, "height", "width"])
    return b, [b.rng.standard_normal((2, 4, 16, 24)).astype(np.float32), np.array([3, 741], np.int64), b.rng.standard_normal((2, 7, words)).astype(np.float32)]


def whisper():
    """The encoder of a speech recogniser: two convolutions over the mel bands of time steps, positions, two pre-norm encoder layers."""
    b, bands, width, heads, steps = Builder("whisper"), 20, 64, 4, 60
    x = b.input("input_features", TensorProto.FLOAT, ["batch", bands, 2 * steps])
    for ins, stride in ((bands, 1), (width, 2)):
        x = b.gelu(b.Conv(x, b.weight(width, ins, 3), b.vector(width), kernel_shape=[3], strides=[stride], pads=[1, 1]))
    x = b.Add(b.Transpose(x, perm=[0, 2, 1]), b.weight(steps, width))
    for _ in range(2):
        x = b.encoder_layer(x, width, heads, norm_first=True)
    b.output(b.layer_norm(x, width), "last_hidden_state", TensorProto.FLOAT, ["batch", steps, width])
    return b, [b.rng.standard_normal((2, bands, 2 * steps)).astype(np.float32)]


def control():
    """A Loop that repeats x ← tanh(x W) until it hardly moves, with the norms scanned out; an If chooses the head by their mean."""
    b, width = Builder("control"), 8
    x = b.input("x", TensorProto.FLOAT, ["rows", width])
    weight, limit = b.weight(width, width), b.input("limit", TensorProto.INT64, [])

    def value(name, dtype, shape=None):
        return helper.make_tensor_value_info(name, dtype, shape)

    body = helper.make_graph(
        [helper.make_node("MatMul", ["h", weight], ["hw"]), helper.make_node("Tanh", ["hw"], ["next"]),
         helper.make_node("Sub", ["next", "h"], ["step"]), helper.make_node("ReduceL2", ["step"], ["norm"], keepdims=0),
         helper.make_node("Constant", [], ["small"], value_float=0.05), helper.make_node("Greater", ["norm", "small"], ["more"])],
        "iterate", [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("h", TensorProto.FLOAT, ["rows", width])],
        [value("more", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, ["rows", width]), value("norm", TensorProto.FLOAT, [])])
    settled, norms = b.Loop(limit, b.constant(np.bool_(True)), x, outputs=2, body=body)
    branch = lambda op, name: helper.make_graph([helper.make_node(op, [settled], [name])], op, [], [value(name, TensorProto.FLOAT, ["rows", width])])
    condition = b.Greater(b.ReduceMean(norms, keepdims=0), b.number(0.2))
    chosen = b.If(condition, then_branch=branch("Relu", "then_y"), else_branch=branch("Neg", "else_y"))
    b.output(chosen, "y", TensorProto.FLOAT, ["rows", width])
    b.output(norms, "norms", TensorProto.FLOAT, ["rounds"])
    return b, [b.rng.standard_normal((3, width)).astype(np.float32), np.array(12, np.int64)]


def pipeline():
    """A scikit-learn pipeline as skl2onnx writes it: a scaler, then a linear classifier and a forest of three classes."""
    b, width, ml = Builder("pipeline"), 4, "ai.onnx.ml"
    floats = lambda *shape: [float(v) for v in b.rng.standard_normal(shape).astype(np.float32).flat]
    x = b.input("x", TensorProto.FLOAT, ["rows", width])
    scaled = b.Scaler(x, domain=ml, offset=floats(width), scale=[0.5, 1.0, 2.0, 0.25])
    label, scores = b.LinearClassifier(scaled, domain=ml, outputs=2, coefficients=floats(3, width), intercepts=floats(3), classlabels_ints=[0, 1, 2], multi_class=1, post_transform="SOFTMAX")
    tree = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    leaf = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for t in range(5):
        for n in range(15):
            inner = n < 7
            row = (t, n, int(b.rng.integers(width)) if inner else 0, float(np.float32(b.rng.standard_normal())) if inner else 0.0, "BRANCH_LEQ" if inner else "LEAF", 2 * n + 1 if inner else 0, 2 * n + 2 if inner else 0)
            for key, entry in zip(tree, row):
                tree[key].append(entry)
            for c, share in enumerate([] if inner else b.rng.dirichlet([1, 1, 1]) / 5):
                for key, entry in zip(leaf, (t, n, c, float(np.float32(share)))):
                    leaf[key].append(entry)
    attributes = {f"nodes_{k}": v for k, v in tree.items()} | {f"class_{k}": v for k, v in leaf.items()}
    forest_label, forest_scores = b.TreeEnsembleClassifier(scaled, domain=ml, outputs=2, classlabels_int64s=[0, 1, 2], post_transform="NONE", **attributes)
    b.output(label, "label", TensorProto.INT64, ["rows"])
    b.output(b.Normalizer(scores, domain=ml, norm="L1"), "probabilities", TensorProto.FLOAT, ["rows", 3])
    b.output(forest_label, "forest_label", TensorProto.INT64, ["rows"])
    b.output(forest_scores, "forest_probabilities", TensorProto.FLOAT, ["rows", 3])
    return b, [b.rng.standard_normal((20, width)).astype(np.float32)]


MODELS = [bert, gpt2, vit, mobilenet, unet, whisper, control, pipeline]


def save(folder, model, inputs):
    """Writes model.onnx, input_<i>.npy and, as output_<i>.npy, the reference's results for them."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    session = reference.open_model(folder / "model.onnx")
    results = session.run(None, {i.name: value for i, value in zip(session.get_inputs(), inputs)})
    for stem, values in (("input", inputs), ("output", results)):
        for i, value in enumerate(values):
            if value.dtype == np.float32 and not (np.isfinite(value).all() and value.std() > 1e-4):
                raise SystemExit(f"{folder.name}: {stem} {i} is degenerate")
            np.save(folder / f"{stem}_{i}.npy", value)


def make(data, build):
    builder, inputs = build()
    model = builder.model()
    onnx.checker.check_model(model)
    save(data / "models" / builder.name, model, inputs)


if __name__ == "__main__":
    for build in MODELS:
        make(pathlib.Path(sys.argv[1]), build)
