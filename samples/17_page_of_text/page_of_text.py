#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a page of text: page_of_text.py DETECTOR RECOGNISER PAGE.png MARKED.png

Prints each line with its position and confidence, and draws MARKED.png: the page with a box around each line, and next to it what was read. The models
are those of PP-OCR. Lines must be horizontal.
"""
import sys

import backplane
import numpy
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

TEXT, SURE, MARGIN = 0.3, 0.6, 1.6  # minimum probability of a pixel and of a box that counts as text; PP-OCR's factor for the margin
RED = (220, 30, 30)
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"


def planes(picture):
    """The planes of blue, green and red as a batch of one, with values from -1 to 1."""
    pixels = numpy.asarray(picture, numpy.float32)[:, :, ::-1] / 127.5 - 1
    return numpy.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def find_lines(detector, page):
    """Boxes (left, top, right, bottom) around lines of text, in reading order.

    The detector returns for each pixel the probability that it belongs to the core of a line, which is the line without its margins. So a margin of
    MARGIN times the core's area over its perimeter is added.
    """
    width, height = (max(32, round(side / 32) * 32) for side in page.size)  # the model's strides need multiples of 32
    probability = detector(planes(page.resize((width, height))))[0, 0]
    cores, count = ndimage.label(probability > TEXT, structure=numpy.ones((3, 3)))
    boxes = []
    for core, mean in zip(ndimage.find_objects(cores), ndimage.mean(probability, cores, range(1, count + 1))):
        (top, bottom), (left, right) = ((part.start, part.stop) for part in core)
        if mean < SURE or min(bottom - top, right - left) < 3:
            continue
        margin = MARGIN * (bottom - top) * (right - left) / (2 * (bottom - top + right - left))
        x, y = page.width / width, page.height / height
        boxes.append((max(0, round((left - margin) * x)), max(0, round((top - margin) * y)),
                      min(page.width, round((right + margin) * x)), min(page.height, round((bottom + margin) * y))))
    return reading_order(boxes)


def reading_order(boxes):
    """From the top down, and from left to right where boxes are at the same height."""
    rows = []
    for box in sorted(boxes, key=lambda box: box[1]):
        if rows and (box[1] + box[3]) / 2 < rows[-1][0][3]:  # its middle is above the lower edge of the row's first box
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row)]


def read_line(recogniser, characters, line):
    """The text of a picture of one line, and the mean probability of its characters."""
    width = max(8, round(48 * line.width / line.height))
    probability = recogniser(planes(line.resize((width, 48))))[0]  # [width / 8, characters]; character 0 means "none"
    best = probability.argmax(axis=1)
    kept = (best != 0) & (best != numpy.roll(best, 1))  # equal ones in adjacent steps are one character
    kept[0] = best[0] != 0
    sure = probability.max(axis=1)[kept]
    return "".join(characters[i] for i in best[kept]), float(sure.mean()) if sure.size else 0.0


def mark(page, boxes, texts):
    """The page with its boxes, and the texts next to it at the same heights."""
    marked = Image.new("RGB", (2 * page.width, page.height), "white")
    marked.paste(page)
    draw = ImageDraw.Draw(marked)
    for box, text in zip(boxes, texts):
        draw.rectangle(box, outline=RED, width=2)
        font = ImageFont.truetype(FONT, max(10, (box[3] - box[1]) // 2))
        draw.text((page.width + box[0], (box[1] + box[3]) // 2), text, fill=(20, 60, 160), font=font, anchor="lm")
    return marked


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    detector = backplane.load(sys.argv[1]).compile()
    model = backplane.load(sys.argv[2])
    recogniser = model.compile()
    characters = ["", *model.report()["metadata"]["character"].removesuffix("\n").split("\n"), " "]
    page = Image.open(sys.argv[3]).convert("RGB")
    boxes, texts = find_lines(detector, page), []
    for box in boxes:
        text, sure = read_line(recogniser, characters, page.crop(box))
        texts.append(text)
        print(f"{box[0]:4},{box[1]:4}  {sure:.2f}  {text}")
    mark(page, boxes, texts).save(sys.argv[4])


if __name__ == "__main__":
    main()
