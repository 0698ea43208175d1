// SPDX-License-Identifier: Apache-2.0
#include "kernels/signal/spectrum.h"

#include <tuple>

namespace backplane::cpu {

namespace {

// The limit for the buffers of a group, so that all of them stay in a core's own cache.
constexpr int64_t kNearBytes = int64_t{256} << 10;

}  // namespace

Spectrum::Spectrum(Kind kind, int64_t length, int64_t lines, int threads)
    : kind_(kind),
      length_(length),
      bins_(kind == Kind::kReal ? length / 2 + 1 : length),
      lines_(lines),
      threads_(threads),
      halved_((kind == Kind::kReal || kind == Kind::kInverseToReal) && length % 2 == 0),
      fft_(kind == Kind::kReal && !halved_ && lines == 1 ? Fft::of(length, bins_)
                                                         : Fft::of(halved_ ? length / 2 : length)) {
  const int64_t bytes = product({4 * int64_t{sizeof(double)}, fft_->room()});  // per lane
  lanes_ = kMaxLanes;
  while (lanes_ > 1 && (lanes_ / 2 >= lines || bytes * lanes_ > kNearBytes)) lanes_ /= 2;
  part_bytes_ = align_up(product({bytes, lanes_}));
  if (!halved_) return;
  const int64_t half = length / 2;
  require_memory(half, 2 * int64_t{sizeof(double)});
  const std::shared_ptr<double[]> turns(new double[static_cast<size_t>(2 * half)]);
  for (int64_t i = 0; i < half; ++i) std::tie(turns[2 * i], turns[2 * i + 1]) = Fft::root(i, length);
  turns_ = turns;
}

}  // namespace backplane::cpu
