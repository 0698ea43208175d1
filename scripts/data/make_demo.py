# SPDX-License-Identifier: Apache-2.0
"""Makes what the demo reads: the recogniser, taken out of its wheel, and the sample pictures.

    make_demo.py DATA WHEELS    writes DATA/ppocr/rec.onnx and DATA/text/
"""
import pathlib
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "samples" / "read_text"))
import draw

RECOGNISER = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"


def extract(wheels, pattern, member, out):
    """Copies one file out of the wheel that the pattern names."""
    found = sorted(wheels.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{wheels}: one {pattern} expected, found {len(found)}")
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(found[0]) as wheel:
        out.write_bytes(wheel.read(member))


if __name__ == "__main__":
    data = pathlib.Path(sys.argv[1])
    extract(pathlib.Path(sys.argv[2]), "rapidocr_onnxruntime-*.whl", RECOGNISER, data / "ppocr" / "rec.onnx")
    draw.draw_samples(data / "text")
