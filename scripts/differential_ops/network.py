# SPDX-License-Identifier: Apache-2.0
"""Losses, recurrent operators, transforms, attention."""
import numpy as np

from .draw import Node


def loss(d):
    n, c = d.size(1, 4), d.size(2, 5)
    tail = d.shape(0, 2, empty=0, large=0)
    inputs = [d.array([n, c] + tail, np.float32, -5, -0.5), d.array([n] + tail, np.int64, 0, c - 1)]
    if d.chance(0.5):
        inputs.append(d.array([c], np.float32, 0.5, 2))
    attributes = {"reduction": d.one(["none", "sum", "mean"])}
    if d.chance(0.3):
        attributes["ignore_index"] = d.size(0, c - 1)
    return Node(d.op, inputs, attributes)


def recurrent(d):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.op]
    direction = d.one(["forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    t, n, i, h = d.size(1, 4), d.size(1, 3), d.size(1, 4), d.size(1, 4)
    x = lambda *shape: d.array(shape, np.float32, -1, 1)
    inputs = [x(t, n, i), x(dirs, gates * h, i), x(dirs, gates * h, h), x(dirs, 2 * gates * h) if d.chance(0.6) else None]
    inputs.append(np.array([d.size(1, t) for _ in range(n)], np.int32) if d.chance(0.3) else None)
    inputs.append(x(dirs, n, h) if d.chance(0.5) else None)
    attributes = {"hidden_size": h, "direction": direction}
    if d.op == "LSTM":
        inputs.append(x(dirs, n, h) if d.chance(0.5) else None)
        inputs.append(x(dirs, 3 * h) if d.chance(0.3) else None)
    if d.op == "GRU":
        attributes["linear_before_reset"] = d.size(0, 1)
    if d.chance(0.2):
        attributes["clip"] = 0.5
    return Node(d.op, inputs, attributes, 3 if d.op == "LSTM" else 2)


def dft(d):
    n = d.size(2, 12)
    inverse = d.size(0, 1)
    shape = [d.size(1, 2), n, 2 if inverse else d.size(1, 2)]
    return Node(d.op, [d.array(shape, np.float32), None, np.array(d.one([1, -2]), np.int64)], {"inverse": inverse, "onesided": 0 if inverse or shape[-1] == 2 else d.size(0, 1)})


def signal_window(d):
    return Node(d.op, [np.array(d.size(2, 40), np.int64)], {"periodic": d.size(0, 1)})


def attention(d):
    batch, heads, q, k, size = d.size(1, 2), d.size(1, 3), d.size(1, 5), d.size(1, 6), d.one([2, 4, 8])
    x = lambda *shape: d.array(shape, np.float32, -2, 2)
    inputs = [x(batch, heads, q, size), x(batch, heads, k, size), x(batch, heads, k, size)]
    if d.chance(0.4):
        inputs.append(x(q, k) if d.chance(0.5) else d.rng.random([q, k]) < 0.8)
        if inputs[-1].dtype == np.bool_:
            inputs[-1][:, 0] = True
    attributes = {"is_causal": d.size(0, 1) if len(inputs) == 3 else 0}
    if d.chance(0.3):
        attributes["softcap"] = 2.0
    return Node(d.op, inputs, attributes)
