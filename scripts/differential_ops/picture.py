# SPDX-License-Identifier: Apache-2.0
"""Resizing and sampling of images."""
import numpy as np

from .draw import ints, Node


def resize(d):
    mode = d.one(["nearest", "linear", "cubic"])
    rank = 4 if mode == "cubic" else d.size(1, 4) if mode == "nearest" else d.one([2, 4])
    shape = [d.size(1, 2), d.size(1, 2)][: max(0, rank - 2)] + [d.size(3, 7) for _ in range(min(rank, 2))]
    attributes = {"mode": mode, "coordinate_transformation_mode": d.one(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"])}
    if mode == "nearest":
        attributes["nearest_mode"] = d.one(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    else:
        attributes["antialias"] = d.size(0, 1) if rank == 4 else 0
    if mode == "cubic":
        attributes["cubic_coeff_a"] = d.one([-0.75, -0.5])
        attributes["exclude_outside"] = d.size(0, 1)
    scales = [1.0] * (rank - min(rank, 2)) + [d.one([0.5, 1.0, 1.5, 2.0, 3.0, 0.75]) for _ in range(min(rank, 2))]
    x = d.array(shape, np.float32)
    if d.chance(0.5):
        return Node(d.op, [x, None, np.array(scales, np.float32)], attributes, 1, "", (2,))
    return Node(d.op, [x, None, None, ints([max(1, int(n * s)) for n, s in zip(shape, scales)])], attributes, 1, "", (3,))


def grid_sample(d):
    n, c = d.size(1, 2), d.size(1, 3)
    attributes = {"mode": d.one(["linear", "nearest", "cubic"]), "padding_mode": d.one(["zeros", "border", "reflection"]), "align_corners": d.size(0, 1)}
    grid = np.round(d.rng.uniform(-1.3, 1.3, [n, d.size(1, 4), d.size(1, 4), 2]), 2).astype(np.float32) + np.float32(0.003)
    return Node(d.op, [d.array([n, c, d.size(3, 6), d.size(3, 6)], np.float32), grid], attributes)


def affine_grid(d):
    n = d.size(1, 2)
    align = d.size(0, 1)  # with aligned corners, extents are at least 2: implementations disagree on the position of a single element
    return Node(d.op, [d.exact([n, 2, 3]), ints([n, d.size(1, 3), d.size(1 + align, 5), d.size(1 + align, 5)])], {"align_corners": align})
