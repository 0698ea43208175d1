#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws pictures of one line of text, for the text reader to read.

    draw.py FOLDER               the ten sample pictures, and expected.tsv (file<TAB>text)
    draw.py --text TEXT FILE.png one picture of your own

Needs Pillow, NumPy and the DejaVu fonts (Debian package fonts-dejavu-core). The same arguments give the same picture.
"""
import argparse
import pathlib

import numpy
from PIL import Image, ImageDraw, ImageFont

FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")
BLACK, WHITE = (0, 0, 0), (255, 255, 255)

# file, text, then what differs from a plain black line on white. Widths vary on purpose: each requires a different
# shape.
SAMPLES = [
    ("plain.png", "Hello, world!", {}),
    ("short.png", "42", {"size": 40}),
    ("bold.png", "HARDWARE", {"font": "DejaVuSans-Bold", "size": 48}),
    ("serif.png", "Twelve good reasons", {"font": "DejaVuSerif", "size": 30}),
    ("mono.png", "max_size=128", {"font": "DejaVuSansMono", "size": 24}),
    ("dark.png", "Light on dark", {"ink": (235, 235, 220), "paper": (20, 30, 60)}),
    ("grey.png", "Receipt #5821", {"ink": (40, 40, 40), "paper": (176, 176, 176), "size": 40}),
    ("noise.png", "Total: $1,234.56", {"noise": 14, "paper": (225, 225, 225)}),
    ("small.png", "jumps over the lazy dog", {"size": 20, "font": "DejaVuSerif-Bold"}),
    ("long.png", "Many devices can share the work of a single model, 24 hours a day", {"size": 36}),
]


def line(text, font="DejaVuSans", size=32, ink=BLACK, paper=WHITE, noise=0.0, seed=1):
    """One line of text as an RGB picture. `noise` is the standard deviation in grey levels."""
    # The basic layout engine produces the same picture whether or not Pillow has a text shaper.
    face = ImageFont.truetype(str(FONTS / f"{font}.ttf"), size, layout_engine=ImageFont.Layout.BASIC)
    margin = size // 4
    ascent, descent = face.getmetrics()
    width = round(face.getlength(text)) + 2 * margin
    picture = Image.new("RGB", (width, ascent + descent + margin), paper)
    ImageDraw.Draw(picture).text((margin, margin // 2), text, fill=ink, font=face)
    if not noise:
        return picture
    pixels = numpy.asarray(picture, dtype=numpy.float64)
    pixels = pixels + numpy.random.default_rng(seed).normal(0.0, noise, pixels.shape)
    return Image.fromarray(pixels.round().clip(0, 255).astype(numpy.uint8))


def draw_samples(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for file, text, look in SAMPLES:
        line(text, **look).save(folder / file)
    rows = "".join(f"{file}\t{text}\n" for file, text, _ in SAMPLES)
    (folder / "expected.tsv").write_text(rows, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Draws pictures of one line of text.")
    parser.add_argument("--text", help="draw this line instead of the samples")
    parser.add_argument("--font", default="DejaVuSans", help="a DejaVu font file without its ending")
    parser.add_argument("--size", type=int, default=32, help="font size in pixels")
    parser.add_argument("out", type=pathlib.Path, help="a folder, or with --text a .png file")
    args = parser.parse_args()
    if args.text is None:
        draw_samples(args.out)
    else:
        line(args.text, font=args.font, size=args.size).save(args.out)


if __name__ == "__main__":
    main()
