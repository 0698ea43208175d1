# SPDX-License-Identifier: Apache-2.0
"""Takes the production models out of their wheels and gives each a small input and the expected output.

    make_models.py DATA WHEELS ppocr|magika
"""
import pathlib
import sys

import numpy
from PIL import Image

import make_text
import reference
from make_demo import RECOGNISER, draw, extract

PPOCR = {
    "det": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    "cls": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "rec": RECOGNISER,
}
MAGIKA = "magika/models/standard_v3_3/model.onnx"
C_SOURCE = b"""/* prints the squares of the first numbers */
#include <stdio.h>

int main(void) {
    for (int i = 0; i < 10; ++i) {
        printf("%d\\n", i * i);
    }
    return 0;
}
"""


def noisy(name, data):
    """Seeded noise on a picture's tensor: every value of the input counts."""
    return data + 0.02 * reference.rng("ppocr", name).standard_normal(data.shape, dtype=numpy.float32)


def page():
    """Two lines of text on one page for the detector: 1x3x160x320."""
    picture = Image.new("RGB", (320, 160), (240, 240, 240))
    for text, place in (("Two lines", (20, 20)), ("on one page", (60, 90))):
        picture.paste(draw.line(text, paper=(240, 240, 240)), place)
    pixels = numpy.asarray(picture, dtype=numpy.float32)[:, :, ::-1] / 255.0
    return numpy.ascontiguousarray(((pixels - 0.5) / 0.5).transpose(2, 0, 1)[None])


def text_line(text, width):
    data = make_text.tensor(draw.line(text), make_text.plain, width)
    if data.shape[3] != width:
        raise SystemExit(f"'{text}' is wider than {width}")
    return data


def make_ppocr(data, wheels):
    inputs = {"det": page(), "cls": text_line("Upright", 192), "rec": text_line("Hello, world!", 320)}
    for name, member in PPOCR.items():
        folder = data / "ppocr" / name
        folder.mkdir(parents=True, exist_ok=True)
        model = data / "ppocr" / f"{name}.onnx"
        extract(wheels, "rapidocr_onnxruntime-*.whl", member, model)
        given = noisy(name, inputs[name]).astype(numpy.float32)
        result = reference.run(reference.open_model(model), given)
        if result.max() < 0.5 or result.std() < 1e-4:
            raise SystemExit(f"ppocr/{name}: degenerate output, largest {result.max()}, deviation {result.std()}")
        reference.store(folder, given, result)


def magika_input():
    """Two files' first and last 1024 bytes, blanks stripped, 256 where a file is shorter: C source, and random bytes."""
    rows = numpy.full((2, 2048), 256, dtype=numpy.int32)
    source = numpy.frombuffer(C_SOURCE.strip(), dtype=numpy.uint8)
    rows[0, : source.size] = source
    rows[0, 2048 - source.size :] = source
    rows[1] = reference.rng("magika").integers(0, 256, 2048)
    return rows


def make_magika(data, wheels):
    model = data / "magika" / "model.onnx"
    extract(wheels, "magika-*.whl", MAGIKA, model)
    given = magika_input()
    result = reference.run(reference.open_model(model), given)
    if result[0].argmax() == result[1].argmax():
        raise SystemExit("magika: C source and random bytes got the same label")
    reference.store(data / "magika", given, result)


if __name__ == "__main__":
    make = {"ppocr": make_ppocr, "magika": make_magika}[sys.argv[3]]
    make(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
