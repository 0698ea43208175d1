#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the sentences nearest in meaning to a query: search.py MODEL TOKENIZER SENTENCES.txt QUERY...

MODEL and TOKENIZER are model.onnx and tokenizer.json of a BERT that encodes sentences, such as all-MiniLM-L6-v2. SENTENCES.txt has one sentence
per line. The embeddings are kept in SENTENCES.npy, which is written again when the text or the model is newer.
"""
import pathlib
import sys

import backplane
import numpy
from tokenizers import Tokenizer

BATCH, SHOWN = 8, 3


class Encoder:
    def __init__(self, model, tokenizer):
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.enable_padding()  # to the longest of a batch
        self.session = backplane.load(model).compile()  # the model's batch and length are dynamic: one session serves all

    def __call__(self, sentences):
        """An array [sentence, width] of unit vectors."""
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))  # by length, so that the sentences of a batch need little padding
        vectors = [None] * len(sentences)
        for begin in range(0, len(order), BATCH):
            batch = order[begin : begin + BATCH]
            texts = self.tokenizer.encode_batch([sentences[i] for i in batch])
            ids = numpy.array([text.ids for text in texts])
            mask = numpy.array([text.attention_mask for text in texts])
            tokens = self.session(input_ids=ids, attention_mask=mask, token_type_ids=numpy.zeros_like(ids))
            sums = (tokens * mask[:, :, None]).sum(axis=1)  # the mean of a sentence's tokens points in the same direction
            for row, i in enumerate(batch):
                vectors[i] = sums[row] / numpy.linalg.norm(sums[row])
        return numpy.stack(vectors)


def kept_embeddings(encoder, path, model, sentences):
    """Returns the embeddings in the .npy file next to the text. Writes that file if it is missing or older than the text or the model."""
    kept = path.with_suffix(".npy")
    if not kept.exists() or kept.stat().st_mtime < max(path.stat().st_mtime, model.stat().st_mtime):
        numpy.save(kept, encoder(sentences))
        print(f"{len(sentences)} sentences embedded, kept in {kept}")
    return numpy.load(kept)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    model, tokenizer, path = map(pathlib.Path, sys.argv[1:4])
    queries = sys.argv[4:]
    encoder = Encoder(model, tokenizer)
    sentences = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    embeddings = kept_embeddings(encoder, path, model, sentences)
    for query, vector in zip(queries, encoder(queries)):
        similarity = embeddings @ vector  # the cosine of the angle
        print(query)
        for i in numpy.argsort(-similarity)[:SHOWN]:
            print(f"  {similarity[i]:.2f}  {sentences[i]}")


if __name__ == "__main__":
    main()
