#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a page to read: draw_page.py PAGE.png. Needs the DejaVu fonts (Debian package fonts-dejavu-core)."""
import sys

from PIL import Image, ImageDraw, ImageFont

FONTS = "/usr/share/fonts/truetype/dejavu/"
LINES = [  # left, top, size, font, text
    (40, 30, 34, "DejaVuSans-Bold", "The Corner Bakery"),
    (40, 84, 18, "DejaVuSans", "12 Mill Lane, open 7 to 18"),
    (40, 150, 22, "DejaVuSerif", "2 rye loaves"),
    (330, 150, 22, "DejaVuSerif", "7.80"),
    (40, 190, 22, "DejaVuSerif", "6 plain rolls"),
    (330, 190, 22, "DejaVuSerif", "3.30"),
    (40, 230, 22, "DejaVuSerif", "1 apple cake"),
    (330, 230, 22, "DejaVuSerif", "14.50"),
    (40, 286, 26, "DejaVuSans-Bold", "Total"),
    (330, 286, 26, "DejaVuSans-Bold", "25.60"),
    (40, 346, 18, "DejaVuSans", "Thank you, and see you tomorrow!"),
]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    page = Image.new("RGB", (448, 400), (247, 243, 232))
    draw = ImageDraw.Draw(page)
    for left, top, size, font, text in LINES:
        draw.text((left, top), text, fill=(35, 35, 45), font=ImageFont.truetype(f"{FONTS}{font}.ttf", size, layout_engine=ImageFont.Layout.BASIC))
    page.save(sys.argv[1])


if __name__ == "__main__":
    main()
