#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queries find a sentence with which they share no word, embeddings are kept, and they equal those of ONNX Runtime. Exit status 77 without the encoder."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

try:
    from tokenizers import Tokenizer
except ImportError:
    Tokenizer = None

HERE = pathlib.Path(__file__).parent
DATA = pathlib.Path(os.environ.get("BACKPLANE_DATA") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "backplane").expanduser()) / "sentences"
BOUND = 1e-5  # 80 units in the last place of fp32 at 1, for six layers. Padding that is not masked changes elements by 0.19.
ANSWERS = {"a delay on the railway": "The train to the coast", "growing vegetables": "Water the tomatoes", "an injured leg": "The doctor told him",
           "how expensive is housing?": "Prices of flats"}


def largest_difference(tokenizer, sentences, embeddings):
    """The largest difference of an element from what ONNX Runtime computes for each sentence alone, without padding."""
    session = onnxruntime.InferenceSession(DATA / "model.onnx", providers=["CPUExecutionProvider"])
    largest = 0.0
    for sentence, embedding in zip(sentences, embeddings, strict=True):
        ids = numpy.array([tokenizer.encode(sentence).ids])
        tokens = session.run(None, {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)})[0][0]
        expected = tokens.mean(axis=0) / numpy.linalg.norm(tokens.mean(axis=0))
        largest = max(largest, float(numpy.abs(expected - embedding).max()))
    return largest


def main():
    if Tokenizer is None or not (DATA / "tokenizer.json").exists():
        print("15_search_sentences: skipped: scripts/setup.sh fetches the encoder and the package tokenizers")
        sys.exit(77)
    tokenizer = Tokenizer.from_file(str(DATA / "tokenizer.json"))
    tokenizer.no_padding()
    with tempfile.TemporaryDirectory() as work:
        text = pathlib.Path(shutil.copy(HERE / "sentences.txt", work))

        def lines(*queries):
            done = subprocess.run([sys.executable, "-B", HERE / "search.py", DATA / "model.onnx", DATA / "tokenizer.json", text, *queries],
                                  stdout=subprocess.PIPE, text=True, check=True)
            print(done.stdout, end="")
            return done.stdout.splitlines()

        sentences = text.read_text().splitlines()
        first = lines(*ANSWERS)
        assert first[0].startswith(f"{len(sentences)} sentences embedded")
        for query, answer in ANSWERS.items():
            assert answer in first[first.index(query) + 1], query
        assert lines("a baker")[0] == "a baker", "the embeddings were not kept"
        difference = largest_difference(tokenizer, sentences, numpy.load(text.with_suffix(".npy")))
    print(f"largest difference from ONNX Runtime: {difference:.1e}")
    assert difference < BOUND


if __name__ == "__main__":
    main()
