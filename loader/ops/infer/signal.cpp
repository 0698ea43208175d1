// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Scalar only(const KnownData* known_data) {
  return known_data && known_data->size() == 1 ? known_data->front() : Scalar();
}

// A real signal of length n is determined by floor(n / 2) + 1 frequencies.
Scalar half(Expressions& m, const Scalar& length) {
  return m.add(m.floor_divide(length, 2), 1);
}

// The input is [..., 1] (real) or [..., 2] (complex). The output is complex, except for the inverse of a one-sided
// spectrum.
Status fourier(Context& c) {
  BP_TRY(c.expect_rank(0, 2, BP_MAX_RANK));
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  bool onesided = c.integer("onesided") != 0, inverse = c.integer("inverse") != 0;
  auto given = c.has(2) ? c.number(2) : std::optional<int64_t>(-2);
  if (!given) {
    if (onesided || c.has(1)) shape.assign(shape.size(), {});  // one extent changes, but its axis is unknown
    shape.back() = onesided && inverse ? 1 : 2;
    return c.set_shape(0, shape);
  }
  int64_t axis;
  BP_TRY(c.axis(*given, c.rank(0), axis));
  if (axis == c.rank(0) - 1)
    return c.fail("axis " + std::to_string(*given) + " holds real and imaginary parts: choose another");
  Expressions& m = c.math();
  if (c.has(1)) {
    shape[axis] = only(c.known_data(1));
  } else if (onesided && inverse) {
    shape[axis] = m.multiply(m.subtract(shape[axis], 1), 2);
  }
  if (onesided && !inverse) shape[axis] = half(m, shape[axis]);
  shape.back() = onesided && inverse ? 1 : 2;
  return c.set_shape(0, shape);
}

// Maps a signal [batch, length, 1 or 2] to [batch, frames, frequencies, 2].
Status short_fourier(Context& c) {
  BP_TRY(c.expect_rank(0, 2, 3));
  BP_TRY(c.expect_rank(2, 1, 1));
  Scalar step = only(c.known_data(1));
  if (step.is_number() && step.value < 1)
    return c.fail("frame_step is " + std::to_string(step.value) + ", but it must be at least 1");
  Scalar frame = c.has(3) ? only(c.known_data(3)) : c.dim(2, 0);
  Expressions& m = c.math();
  Scalar frames;
  if (step.is_number()) frames = m.add(m.floor_divide(m.subtract(c.dim(0, 1), frame), step), 1);
  return c.set_shape(0, {c.dim(0, 0), frames, c.integer("onesided") ? half(m, frame) : frame, 2});
}

Status mel_weights(Context& c) {
  BP_TRY(c.set_dtype_number(0, c.integer("output_datatype")));
  return c.set_shape(0, {half(c.math(), only(c.known_data(1))), only(c.known_data(0))});
}

}  // namespace

std::span<const RuleRow> signal_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "DFT", fourier},
      {"", "MelWeightMatrix", mel_weights},
      {"", "STFT", short_fourier},
  };
  return kRows;
}

}  // namespace backplane::ops
