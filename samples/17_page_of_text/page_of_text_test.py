#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every line of the drawn page is read, at its position and in reading order; an empty page has no lines. Exit status 77 without PP-OCR's models or fonts."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from PIL import Image

import draw_page
import page_of_text

HERE = pathlib.Path(__file__).parent
DATA = pathlib.Path(os.environ.get("BACKPLANE_DATA") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "backplane").expanduser()) / "ppocr"


def read(page, marked):
    """What the sample prints about a page: a list of (left, top, text)."""
    done = subprocess.run([sys.executable, "-B", HERE / "page_of_text.py", DATA / "det.onnx", DATA / "rec.onnx", page, marked], stdout=subprocess.PIPE,
                          text=True, check=True)
    print(done.stdout, end="")
    rows = [re.fullmatch(r" *(\d+), *(\d+)  [01]\.\d\d  (.*)", line).groups() for line in done.stdout.splitlines()]
    return [(int(left), int(top), text) for left, top, text in rows]


def main():
    for file in (DATA / "det.onnx", DATA / "rec.onnx", pathlib.Path(draw_page.FONTS, "DejaVuSans.ttf")):
        if not file.exists():
            print(f"17_page_of_text: skipped: no {file}; scripts/setup.sh fetches the models and installs the fonts")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        page, marked = work + "/page.png", work + "/marked.png"
        subprocess.run([sys.executable, "-B", HERE / "draw_page.py", page], check=True)
        rows = read(page, marked)
        assert [text for _, _, text in rows] == [line[4] for line in draw_page.LINES]
        for (left, top, text), (x, y, size, _, _) in zip(rows, draw_page.LINES):
            assert abs(left - x) < size and abs(top - y) < size, text
            assert Image.open(marked).getpixel((left, top)) == page_of_text.RED, text
        Image.new("RGB", (300, 200), "white").save(page)
        assert read(page, marked) == []
    # The right one of two boxes at the same height begins a little higher.
    assert page_of_text.reading_order([(90, 8, 120, 28), (10, 40, 120, 60), (10, 10, 60, 30)]) == [(10, 10, 60, 30), (90, 8, 120, 28), (10, 40, 120, 60)]
    print("17_page_of_text: as expected")


if __name__ == "__main__":
    main()
