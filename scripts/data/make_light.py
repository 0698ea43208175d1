# SPDX-License-Identifier: Apache-2.0
"""Gives the nine light architectures of the onnx package seeded weights, an input and the expected output.

    make_light.py DATA [NAME…]    reads DATA/onnx/light/, writes DATA/light/<name>/{model.onnx,input_0.npy,output_0.npy}

In the package every float weight is one constant, so almost any wrong kernel passes. Here a tensor is drawn by its role:
  convolution, Gemm weight   He-normal, variance 2 / fan-in
  scale, Mul                 1 + small noise
  bias, shift, Add           small noise
  batch norm mean, variance  those of the values that arrive, as after training; the variance moved by up to a quarter
A convolution with a bias is then centred and scaled as if a batch norm were folded into it, and the last layer is scaled
so that the scores spread by SPREAD. So the graph is evaluated node by node while weights are drawn. Values neither
explode nor vanish, which is asserted at every node, and the output depends on the input.
"""
import collections
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

import reference

NAMES = {
    "alexnet": "bvlc_alexnet", "densenet121": "densenet121", "inception_v1": "inception_v1",
    "inception_v2": "inception_v2", "resnet50": "resnet50", "shufflenet": "shufflenet",
    "squeezenet": "squeezenet", "vgg19": "vgg19", "zfnet512": "zfnet512",
}  # fmt: skip
SPREAD = 2.0  # standard deviation of the scores before softmax
SMALL = 0.1


def attribute(node, name, default):
    found = [onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name]
    return found[0] if found else default


class Light:
    def __init__(self, name, source):
        self.name = name
        self.model = onnx.load(source)
        self.graph = self.model.graph
        self.opset = self.model.opset_import
        self.given = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        self.shapes = {}  # of every tensor to draw
        self.drawn = {}
        self.nodes = []  # what remains of the graph
        for node in self.graph.node:
            if node.op_type == "ConstantOfShape":
                self.shapes[node.output[0]] = tuple(int(d) for d in self.given[node.input[0]])
            else:
                self.nodes.append(node)
        self.shapes |= {n: a.shape for n, a in self.given.items() if a.dtype == numpy.float32}
        self.users = collections.Counter(i for node in self.nodes for i in node.input)
        self.last = [n for n in self.nodes if n.op_type in ("Conv", "Gemm")][-1].output[0]
        inputs = [i for i in self.graph.input if i.name not in self.given]
        if len(inputs) != 1 or len(self.graph.output) != 1:
            raise SystemExit(f"{name}: one input and one output expected")
        self.input = inputs[0]
        self.output = self.graph.output[0].name

    def evaluate(self, node, arrays):
        """The first output of one node."""
        names = [f"in{i}" for i in range(len(arrays))]
        alone = onnx.NodeProto()
        alone.CopyFrom(node)
        alone.ClearField("input")
        alone.input.extend(names)
        del alone.output[1:]
        inputs = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names, arrays)
        ]
        graph = onnx.helper.make_graph([alone], "one", inputs, [onnx.ValueInfoProto(name=alone.output[0])])
        model = onnx.helper.make_model(graph, opset_imports=self.opset, ir_version=4)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, dict(zip(names, arrays)))[0]

    def draw(self, tensor, make):
        """Draws a tensor that has no value yet. `make` gets a generator and the tensor's shape."""
        if tensor not in self.drawn:
            if tensor not in self.shapes or self.users[tensor] != 1:
                raise SystemExit(f"{self.name}: {tensor} is not a weight of one node")
            made = make(reference.rng(self.name, tensor), self.shapes[tensor])
            self.drawn[tensor] = numpy.ascontiguousarray(made, dtype=numpy.float32)
        return self.drawn[tensor]

    def source(self, tensor):
        """The weight that a tensor comes from: some are reshaped before use."""
        for node in self.nodes:
            if tensor in node.output and node.op_type in ("Unsqueeze", "Reshape"):
                return self.source(node.input[0])
        return tensor if tensor in self.shapes else None

    def draw_inputs(self, node, values):
        """Draws what `node` needs; `values` holds what it reads."""

        def noise(generator, shape):
            return SMALL * generator.standard_normal(shape, dtype=numpy.float32)

        def near_one(generator, shape):
            return 1.0 + noise(generator, shape)

        def he_normal(generator, shape):
            if node.op_type == "Conv":
                fan_in = int(numpy.prod(shape[1:]))
            else:
                fan_in = shape[-1] if attribute(node, "transB", 0) else shape[-2]
            return generator.standard_normal(shape, dtype=numpy.float32) * numpy.float32((2.0 / fan_in) ** 0.5)

        roles = {"Conv": {1: he_normal, 2: noise}, "Gemm": {1: he_normal, 2: noise}, "Mul": {1: near_one}, "Add": {1: noise}}
        if node.op_type == "BatchNormalization":
            x = values[node.input[0]].astype(numpy.float64)
            mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
            self.draw(node.input[1], near_one)
            self.draw(node.input[2], noise)
            self.draw(node.input[3], lambda generator, shape: mean + 0 * noise(generator, shape))
            self.draw(node.input[4], lambda generator, shape: variance * generator.uniform(0.8, 1.25, shape) + 1e-3)
        for index, make in roles.get(node.op_type, {}).items():
            weight = self.source(node.input[index]) if index < len(node.input) else None
            if weight:
                self.draw(weight, make)

    def fill(self, data):
        """Draws every weight, walking the graph with `data` as its input."""
        values = {self.input.name: data}
        left = collections.Counter(self.users)
        waiting = []  # nodes that only reshape weights: evaluated when their weight is drawn
        for node in self.nodes:
            weight = self.source(node.output[0])
            if weight:
                waiting.append(node)
                continue
            self.draw_inputs(node, values)
            while waiting and all(self.known(i, values) is not None for i in waiting[0].input):
                first = waiting.pop(0)
                values[first.output[0]] = self.evaluate(first, [self.known(i, values) for i in first.input])
            result = self.evaluate(node, [self.known(i, values) for i in node.input])
            if node.op_type == "Conv" and len(node.input) == 3 and node.output[0] != self.last:
                scale = 1.0 / result.std()
                self.drawn[node.input[1]] *= scale
                self.drawn[node.input[2]] -= scale * result.mean(axis=(0, 2, 3))
                result = self.evaluate(node, [self.known(i, values) for i in node.input])
            if node.output[0] == self.last:
                weight = self.drawn[self.source(node.input[1])]
                weight *= numpy.float32(SPREAD / result.std())
                for i in node.input[1:2]:
                    if i in values:  # it came through a Reshape
                        values[i] = weight.reshape(values[i].shape)
                result = self.evaluate(node, [self.known(i, values) for i in node.input])
            if node.op_type != "Softmax" and not (numpy.isfinite(result).all() and 0.02 < result.std() < 50.0):
                raise SystemExit(f"{self.name}: {node.op_type} {node.output[0]} has deviation {result.std()}")
            values[node.output[0]] = result
            for i in node.input:
                left[i] -= 1
                if left[i] == 0:
                    values.pop(i, None)
        if waiting:
            raise SystemExit(f"{self.name}: {len(waiting)} weights were not drawn")

    def known(self, name, values):
        for place in (values, self.drawn):
            if name in place:
                return place[name]
        return None if name in self.shapes else self.given.get(name)

    def save(self, path):
        """The same graph with real initializers that are no graph inputs (allowed from IR version 4)."""
        used = {i for node in self.nodes for i in node.input}
        kept = {n: a for n, a in self.given.items() if n in used and n not in self.drawn}
        if any(a.dtype == numpy.float32 for a in kept.values()):
            raise SystemExit(f"{self.name}: a float tensor kept its constant")
        self.model.ir_version = max(self.model.ir_version, 4)
        self.model.producer_name = "backplane make_light.py"
        for field, content in (("node", self.nodes), ("input", [self.input])):
            content = [type(c).FromString(c.SerializeToString()) for c in content]
            self.graph.ClearField(field)
            getattr(self.graph, field).extend(content)
        self.graph.ClearField("initializer")
        for name, array in {**kept, **self.drawn}.items():
            self.graph.initializer.append(numpy_helper.from_array(array, name))
        onnx.save(self.model, path)


def check_output(name, result, other):
    """The outputs must tell right from wrong: spread over classes, and different for another input."""
    scores = result.astype(numpy.float64).ravel()
    if abs(scores.sum() - 1.0) < 1e-3 and scores.min() >= 0.0:
        if scores.max() > 0.9:
            raise SystemExit(f"{name}: softmax chose one class, {scores.max()}")
        scores = numpy.log(scores)
    spread = scores.std()
    moved = (numpy.abs(result - other) / (numpy.abs(result) + 1e-12)).mean()
    if not 0.3 < spread < 10.0 or moved < 0.02:
        raise SystemExit(f"{name}: degenerate output, spread {spread}, moved by another input {moved}")
    return spread, moved


def make(name, data):
    light = Light(name, data / "onnx" / "light" / f"light_{NAMES[name]}.onnx")
    shape = tuple(d.dim_value for d in light.input.type.tensor_type.shape.dim)
    picture = reference.rng(name, "input").standard_normal(shape, dtype=numpy.float32)
    other = reference.rng(name, "another input").standard_normal(shape, dtype=numpy.float32)
    light.fill(picture)
    folder = data / "light" / name
    folder.mkdir(parents=True, exist_ok=True)
    light.save(folder / "model.onnx")
    del light
    session = reference.open_model(folder / "model.onnx")
    result = reference.run(session, picture)
    spread, moved = check_output(name, result, reference.run(session, other))
    reference.store(folder, picture, result)
    print(f"  {name}: scores spread by {spread:.2f}, another input moves them by {moved:.0%}", flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[2:] or NAMES:
        make(chosen, pathlib.Path(sys.argv[1]))
