#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py OURS.npy REFERENCE.npy: whether a model's output agrees with the reference.

Type and shape must be equal, texts too, and every number within 1e-3 of its own size plus 1e-7. An element near zero of an output that sums
large terms (raw scores) carries the rounding errors of those terms, and has a wider bound: an fp32 sum of K terms has an error of about
2^-24 * sqrt(K) times their magnitude, and the errors of L layers add up independently, to 2^-24 * sqrt(K * L). With K = 1024 and L = 128
this is 2^-15.5 of the output's largest magnitude. Prints one line, with the number of elements that need the wider bound; exits with 1 if
any differs.
"""
import sys

import numpy

ours, reference = (numpy.load(path) for path in sys.argv[1:3])
texts = ours.dtype.kind == reference.dtype.kind == "U"
if (ours.dtype != reference.dtype and not texts) or ours.shape != reference.shape:
    print(f"{ours.dtype}{list(ours.shape)}, expected {reference.dtype}{list(reference.shape)}")
    sys.exit(1)
if texts:
    wrong = int((ours != reference).sum())
    print(f"{wrong} of {ours.size} texts differ")
    sys.exit(1 if wrong else 0)
error = numpy.abs(ours.astype("float64") - reference.astype("float64"))
size = numpy.abs(reference.astype("float64"))
bound = numpy.maximum(1e-3 * size + 1e-7, 2.0**-15.5 * size.max(initial=0))
strict = int((error > 1e-3 * size + 1e-7).sum())
wrong = int((~(error <= bound)).sum())
print(f"largest error {error.max(initial=0):.3g}, {strict} of {error.size} elements beyond 1e-3 of their own size, "
      f"{wrong} beyond the bound")
sys.exit(1 if wrong else 0)
