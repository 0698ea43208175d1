# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import unittest

import numpy
import pytest
from onnx import TensorProto, helper

import backplane
import models
import onnx_suite
from backplane import onnx_backend

X = numpy.array([[-1, 0, 1], [2, -3, 4]], numpy.float32)
Y = numpy.maximum(X, 0)


def test_prepare_and_run() -> None:
    prepared = onnx_backend.prepare(models.relu(), device="CPU")
    for inputs in ([X], {"x": X}, X):
        outputs = prepared.run(inputs)
        assert numpy.array_equal(outputs[0], Y)
        assert numpy.array_equal(outputs.y, Y)
    assert numpy.array_equal(onnx_backend.run_model(models.relu(), [X])[0], Y)


def test_run_node() -> None:
    add = helper.make_node("Add", ["a", "b"], ["sum"])
    assert numpy.array_equal(onnx_backend.run_node(add, [X, X], device="cpu")[0], X + X)


def test_run_node_by_name_and_with_sequences() -> None:
    add = helper.make_node("Add", ["a", "b"], ["sum"])
    assert numpy.array_equal(onnx_backend.run_node(add, {"b": X, "a": X})[0], X + X)
    with pytest.raises(ValueError, match="the node has no input 'c'; it has: a, b"):
        onnx_backend.run_node(add, {"a": X, "c": X})
    joined = helper.make_node("ConcatFromSequence", ["parts"], ["all"], axis=0)
    assert numpy.array_equal(onnx_backend.run_node(joined, [[X, Y]])[0], numpy.concatenate([X, Y]))
    at = helper.make_node("SequenceAt", ["parts", "position"], ["part"])
    assert numpy.array_equal(onnx_backend.run_node(at, [[X, Y], 1])[0], Y)
    assert onnx_backend.run_node(helper.make_node("SequenceLength", ["parts"], ["count"]), [[]])[0] == 0


def test_run_node_explains_what_is_wrong() -> None:
    with pytest.raises(backplane.InvalidModel, match="no operator 'Gelu' exists in opset 10"):
        onnx_backend.run_node(helper.make_node("Gelu", ["x"], ["y"]), [X], opset_version=10)
    with pytest.raises(TypeError, match="input 's' is a sequence: a list of arrays is expected"):
        onnx_backend.run_node(helper.make_node("SequenceLength", ["s"], ["n"]), [[3.0]])
    with pytest.raises(TypeError, match="input 's' is a sequence: a list of arrays is expected"):
        onnx_backend.run_node(helper.make_node("SequenceLength", ["s"], ["n"]), [3])
    whole = numpy.array([1, 2])
    inserted = onnx_backend.run_node(helper.make_node("SequenceInsert", ["s", "x"], ["t"]), [[], whole])[0]
    assert [each.tolist() for each in inserted] == [whole.tolist()]


def test_compatible() -> None:
    assert onnx_backend.is_compatible(models.relu())
    assert not onnx_backend.is_compatible(models.identity(TensorProto.STRING, [1]), device="null")
    assert not onnx_backend.is_compatible(models.relu(), device="TPU")
    assert not onnx_backend.Backend("null").is_compatible(models.identity(TensorProto.STRING, [1]))


def test_too_many_inputs() -> None:
    with pytest.raises(ValueError, match="there are 3 inputs, but the model has 1: x"):
        onnx_backend.prepare(models.relu()).run([X, X, X])
    with pytest.raises(ValueError, match="there are 3 inputs, but the node has 2: a, b"):
        onnx_backend.run_node(helper.make_node("Add", ["a", "b"], ["sum"]), [X, X, X])


def test_inputs_that_are_left_out() -> None:
    high = numpy.array(1, numpy.float32)
    for names in (["x", "low", "high"], ["x", "", "high"]):
        clip = helper.make_node("Clip", names, ["y"])
        assert numpy.array_equal(onnx_backend.run_node(clip, [X, None, high])[0], numpy.minimum(X, 1))
    assert list(clip.input) == ["x", "", "high"]
    assert numpy.array_equal(onnx_backend.run_node(clip, [X, high])[0], numpy.minimum(X, 1))
    clip = helper.make_node("Clip", ["x", "low", "high"], ["y"])
    assert numpy.array_equal(onnx_backend.run_node(clip, [X, None, None])[0], X)
    assert list(clip.input) == ["x", "low", "high"]


def test_devices() -> None:
    assert onnx_backend.supports_device("CPU")
    assert onnx_backend.supports_device("cpu")
    assert onnx_backend.supports_device("cpu:0")
    assert not onnx_backend.supports_device("TPU")
    with pytest.raises(backplane.Unsupported, match="null"):
        onnx_backend.prepare(models.identity(TensorProto.STRING, [1]), device="null")


def test_the_suite_skips_only_what_the_device_refuses() -> None:
    backend = onnx_suite.backend_of("null")
    model = models.identity(TensorProto.STRING, [1])
    with pytest.raises(unittest.SkipTest, match="null"):
        backend.prepare(model, "CPU")
    assert backend.is_compatible(model)  # otherwise the suite would skip it without the device's reason
    assert onnx_suite.backend_of("cpu").is_compatible(model)
    model.ir_version = 1000
    with pytest.raises(backplane.Unsupported, match="IR version 1000"):
        backend.prepare(model, "CPU")
