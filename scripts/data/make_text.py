# SPDX-License-Identifier: Apache-2.0
"""Proves that the recogniser reads each of the sample pictures exactly.

    make_text.py DATA    reads DATA/text/ and DATA/ppocr/rec.onnx, as make_demo.py leaves them

Readers resize in different ways, so each picture must be read correctly with every one of the ways below.
"""
import pathlib
import sys

import numpy
from PIL import Image

import reference

HEIGHT = 48


def smooth(picture, width):
    """Bilinear with antialiasing when it shrinks."""
    return numpy.asarray(picture.resize((width, HEIGHT), Image.Resampling.BILINEAR), dtype=numpy.float32)


def plain(picture, width):
    """Bilinear between the four nearest pixels, pixel centres aligned, no antialiasing."""
    pixels = numpy.asarray(picture, dtype=numpy.float32)

    def places(new, old):
        at = ((numpy.arange(new) + 0.5) * old / new - 0.5).clip(0, old - 1)
        low = at.astype(int)
        return low, (low + 1).clip(max=old - 1), (at - low).astype(numpy.float32)

    top, bottom, down = places(HEIGHT, pixels.shape[0])
    left, right, across = places(width, pixels.shape[1])
    down, across = down[:, None, None], across[None, :, None]
    rows = pixels[top] * (1 - down) + pixels[bottom] * down
    return rows[:, left] * (1 - across) + rows[:, right] * across


def tensor(picture, resize, least_width=0):
    """1x3xHEIGHTxW in blue, green, red order and within [-1, 1]; zeros on the right up to the least width."""
    width = max(1, round(HEIGHT * picture.width / picture.height))
    pixels = resize(picture.convert("RGB"), width)[:, :, ::-1] / 255.0
    data = numpy.zeros((1, 3, HEIGHT, max(width, least_width)), dtype=numpy.float32)
    data[0, :, :, :width] = ((pixels - 0.5) / 0.5).transpose(2, 0, 1)
    return data


def characters(session):
    """Class 0 is the blank, the last one the space."""
    listed = session.get_modelmeta().custom_metadata_map["character"].splitlines()
    return ["", *listed, " "]


def decode(scores, alphabet):
    """Best class at each step; repeats count once."""
    best = scores[0].argmax(axis=1)
    kept = [c for i, c in enumerate(best) if i == 0 or c != best[i - 1]]
    return "".join(alphabet[c] for c in kept)


def main():
    data = pathlib.Path(sys.argv[1])
    session = reference.open_model(data / "ppocr" / "rec.onnx")
    alphabet = characters(session)
    wrong = 0
    for row in (data / "text" / "expected.tsv").read_text(encoding="utf-8").splitlines():
        file, text = row.split("\t")
        picture = Image.open(data / "text" / file)
        for resize in (smooth, plain):
            for least_width in (0, 320):
                scores = reference.run(session, tensor(picture, resize, least_width))
                if scores.shape[2] != len(alphabet):
                    raise SystemExit(f"the recogniser has {scores.shape[2]} classes, its list {len(alphabet)}")
                read = decode(scores, alphabet)
                if read != text:
                    print(f"{file}: drawn '{text}', read '{read}' ({resize.__name__}, least width {least_width})")
                    wrong += 1
    if wrong:
        raise SystemExit(f"{wrong} readings of the sample pictures are wrong")


if __name__ == "__main__":
    main()
