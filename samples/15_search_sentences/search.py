#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the sentences nearest in meaning to a query: search.py MODEL TOKENIZER SENTENCES.txt QUERY...

MODEL and TOKENIZER are model.onnx and tokenizer.json of a BERT that encodes sentences, such as all-MiniLM-L6-v2. The embeddings of the sentences, one a
line, are kept in SENTENCES.npy and made again when the text or the model is newer.
"""
import json
import pathlib
import sys
import unicodedata

import backplane
import numpy

BATCH, SHOWN = 8, 3


class Tokenizer:
    """BERT's for text without case: words and punctuation marks, then the longest known pieces of each word."""

    def __init__(self, path):
        description = json.loads(path.read_text(encoding="utf-8"))
        if description["model"]["type"] != "WordPiece" or not description["normalizer"]["lowercase"]:
            sys.exit(f"{path}: not a WordPiece tokenizer of lower-case text")
        self.ids = description["model"]["vocab"]
        self.longest = description["model"]["max_input_chars_per_word"]
        self.limit = description["truncation"]["max_length"]

    def pieces(self, word):
        """The ids of a word's pieces. All but the first are in the vocabulary with ## in front."""
        ids, rest, mark = [], word, ""
        while rest:
            length = next((n for n in range(len(rest), 0, -1) if mark + rest[:n] in self.ids), 0)
            if length == 0 or len(word) > self.longest:
                return [self.ids["[UNK]"]]
            ids.append(self.ids[mark + rest[:length]])
            rest, mark = rest[length:], "##"
        return ids

    def __call__(self, text):
        spaced = ""
        for c in unicodedata.normalize("NFD", text.lower()):  # accents become characters of their own, Mn, and are left out
            kind = unicodedata.category(c)
            if kind == "Mn" or (kind[0] == "C" and not c.isspace()):
                continue
            alone = kind[0] == "P" or (c.isascii() and not c.isalnum()) or "\u4e00" <= c <= "\u9fff"
            spaced += f" {c} " if alone else c
        ids = [i for word in spaced.split() for i in self.pieces(word)]
        return [self.ids["[CLS]"], *ids[: self.limit - 2], self.ids["[SEP]"]]


class Encoder:
    def __init__(self, model, tokenizer):
        self.tokenizer = Tokenizer(tokenizer)
        self.session = backplane.load(model).compile()  # its batch and length are dynamic: one session for all

    def __call__(self, sentences):
        """An array [sentence, width] of unit vectors."""
        ids = [self.tokenizer(sentence) for sentence in sentences]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))  # similar lengths in a batch: little padding
        vectors = [None] * len(ids)
        for begin in range(0, len(order), BATCH):
            batch = order[begin : begin + BATCH]
            longest = len(ids[batch[-1]])
            padded = numpy.zeros((len(batch), longest), numpy.int64)
            mask = numpy.zeros_like(padded)
            for row, i in enumerate(batch):
                padded[row, : len(ids[i])] = ids[i]
                mask[row, : len(ids[i])] = 1
            tokens = self.session(input_ids=padded, attention_mask=mask, token_type_ids=numpy.zeros_like(padded))
            sums = (tokens * mask[:, :, None]).sum(axis=1)  # the mean of a sentence's tokens points in the same direction
            for row, i in enumerate(batch):
                vectors[i] = sums[row] / numpy.linalg.norm(sums[row])
        return numpy.stack(vectors)


def kept_embeddings(encoder, path, model, sentences):
    """The embeddings in the file next to the text, which is written if it is missing or older than the text or the model."""
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
