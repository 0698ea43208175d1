// SPDX-License-Identifier: Apache-2.0
// Oracles of discrete Fourier transforms, computed as the sums that define them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

// One complex element of a spectrum: two sums over the signal, in which each sine and cosine has its own error.
struct Bin {
  Tracked real, imaginary;
};
class Spectrum {
 public:
  // Each sum is allowed the error of `count` terms, even though a fast transform adds in log2(count) stages.
  Spectrum(bp_dtype_t dtype, int64_t count) : dtype_(dtype), count_(count) {}

  // `sign` is -1 for the forward transform and 1 for the inverse.
  Bin bin(const std::vector<Tracked>& real, const std::vector<Tracked>& imaginary, int64_t k, double sign) const {
    TrackedSum re(dtype_), im(dtype_);
    for (int64_t n = 0; n < count_; ++n) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k * n % count_) / static_cast<double>(count_);
      const double c = std::cos(angle), s = sign * std::sin(angle);
      // A device may compute a cosine from a rounded angle, or by recurrence from other cosines: 16 roundings are
      // allowed.
      const Tracked cosine(c, 16), sine(s, 16);
      const auto at = static_cast<size_t>(n);
      re.add(real[at], cosine);
      re.add(imaginary[at], Tracked(-s, 16));
      im.add(real[at], sine);
      im.add(imaginary[at], cosine);
    }
    return {re.result(), im.result()};
  }

 private:
  bp_dtype_t dtype_;
  int64_t count_;
};

// The last axis holds the real and the imaginary part, or only the real part.
References dft(const Call& call) {
  const Array& x = call.in(0, 2);
  require(is_float(x.dtype), "the signal is not floating-point");
  const int64_t parts = x.extents.back();
  require(parts == 1 || parts == 2, "the last axis must hold one or two parts");
  const int64_t axis = normal_axis(call.has(2) ? whole(call.single(2)) : -2, x.rank());
  require(axis < x.rank() - 1, "the axis is the last one, which holds the parts");
  const auto a = static_cast<size_t>(axis);
  const int64_t count = call.has(1) ? whole(call.single(1)) : x.extents[a];
  require(count >= 1 && count <= 1 << 16, "the length is not from 1 to 2^16");
  const bool inverse = call.integer("inverse") != 0, onesided = call.integer("onesided") != 0;
  require_known(!(inverse && onesided), "the oracle does not support one-sided inverse transforms");
  const int64_t bins = onesided ? count / 2 + 1 : count;
  Extents shape = x.extents, lines = x.extents;
  shape[a] = bins;
  shape.back() = 2;
  lines[a] = 1;
  lines.back() = 1;
  require_steps(static_cast<double>(count_of(lines)) * static_cast<double>(bins) * static_cast<double>(count));
  Array positions(BP_DTYPE_INT64, shape);
  for (size_t i = 0; i < positions.values.size(); ++i) positions.values[i] = static_cast<double>(i);
  std::vector<Tracked> elements(positions.values.size());
  const Spectrum spectrum(x.dtype, count);
  for_each_index(lines, [&](const Index& line) {
    std::vector<Tracked> real(static_cast<size_t>(count)), imaginary(static_cast<size_t>(count));
    Index at = line;
    for (int64_t n = 0; n < std::min(count, x.extents[a]); ++n) {
      at[a] = n;
      at.back() = 0;
      real[static_cast<size_t>(n)] = x.at(at);
      if (parts == 1) continue;
      at.back() = 1;
      imaginary[static_cast<size_t>(n)] = x.at(at);
    }
    for (int64_t k = 0; k < bins; ++k) {
      const Bin bin = spectrum.bin(real, imaginary, k, inverse ? 1 : -1);
      const Tracked divisor(inverse ? static_cast<double>(count) : 1);
      at[a] = k;
      at.back() = 0;
      elements[static_cast<size_t>(positions.at(at))] = bin.real / divisor;
      at.back() = 1;
      elements[static_cast<size_t>(positions.at(at))] = bin.imaginary / divisor;
    }
  });
  return {tracked_reference(x.dtype, shape, elements)};
}

// Cuts a real signal [batch, length, 1] into frames, multiplies each frame by the window and transforms it.
References stft(const Call& call) {
  const Array& x = call.in(0, 2);
  require_known(is_float(x.dtype) && (x.rank() == 2 || (x.rank() == 3 && x.extents[2] == 1)),
                "the oracle supports only floating-point signals of shape [batch, length] or [batch, length, 1]");
  const int64_t step = whole(call.single(1));
  require(call.has(2) || call.has(3), "neither a window nor a frame length is given");
  const int64_t frame = call.has(3) ? whole(call.single(3)) : call.in(2).count();
  require(step >= 1 && frame >= 1 && frame <= x.extents[1],
          "the step is not positive, or the length of a frame is not from 1 to that of the signal");
  std::vector<double> window(static_cast<size_t>(frame), 1);
  if (call.has(2)) window = call.vector(2, frame);
  const bool onesided = call.integer("onesided", 1) != 0;
  const int64_t bins = onesided ? frame / 2 + 1 : frame, frames = (x.extents[1] - frame) / step + 1;
  const Extents shape = {x.extents[0], frames, bins, 2};
  require_steps(static_cast<double>(count_of(shape)) * static_cast<double>(frame));
  const Spectrum spectrum(x.dtype, frame);
  const std::vector<Tracked> zeros(static_cast<size_t>(frame));
  std::vector<Tracked> elements;
  for (int64_t b = 0; b < x.extents[0]; ++b) {
    for (int64_t f = 0; f < frames; ++f) {
      std::vector<Tracked> real;
      for (int64_t n = 0; n < frame; ++n)
        real.push_back(Tracked(x.values[static_cast<size_t>(b * x.extents[1] + f * step + n)]) *
                       Tracked(window[static_cast<size_t>(n)]));
      for (int64_t k = 0; k < bins; ++k) {
        const Bin bin = spectrum.bin(real, zeros, k, -1);
        elements.push_back(bin.real);
        elements.push_back(bin.imaginary);
      }
    }
  }
  return {tracked_reference(x.dtype, shape, elements)};
}

const Operator kOperators[] = {
    {"DFT", {20}, dft},
    {"STFT", {17}, stft},
};

}  // namespace

std::span<const Operator> signal_operators() {
  return kOperators;
}

}  // namespace backplane::conform
