#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_weights.py FOLDER: weights32.bin and weights16.bin for the models of models.json in FOLDER, each as large as its largest model needs.

A sequence of about a million normal numbers, of standard deviation 0.02, is repeated. Its length is a prime number, so that two weights of the
same shape are not equal. Needs nothing but Python.
"""
import array
import json
import pathlib
import random
import struct
import sys

LENGTH = 1_000_003


def main():
    folder = pathlib.Path(sys.argv[1])
    models = json.loads((folder / "models.json").read_text())
    draw = random.Random(1)
    numbers = [draw.gauss(0, 0.02) for _ in range(LENGTH)]
    for bits, code in ((32, "f"), (16, "e")):
        sequence = array.array("f", numbers).tobytes() if code == "f" else struct.pack(f"<{LENGTH}e", *numbers)
        left = max(model["file_bytes"] for name, model in models.items() if name.endswith(str(bits)))
        with open(folder / f"weights{bits}.bin", "wb") as file:
            while left > 0:
                left -= file.write(sequence[:left])


if __name__ == "__main__":
    main()
