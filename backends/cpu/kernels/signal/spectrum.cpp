// SPDX-License-Identifier: Apache-2.0
#include "kernels/signal/spectrum.h"

#include <tuple>

#include "runtime/thread_state.h"

namespace backplane::cpu {

namespace {

// The limit for the buffers of a group, so that all of them stay in a core's own cache.
constexpr int64_t kNearBytes = int64_t{256} << 10;

}  // namespace

Spectrum::Layout::Layout(Kind kind, int64_t length, int64_t lines)
    : halved((kind == Kind::kReal || kind == Kind::kInverseToReal) && length % 2 == 0),
      fft_length(halved ? length / 2 : length),
      bins(kind == Kind::kReal && !halved && lines == 1 ? length / 2 + 1 : fft_length) {
  const int64_t bytes = product({4 * int64_t{sizeof(double)}, Fft::room_of(fft_length, bins)});  // per lane
  lanes = kMaxLanes;
  while (lanes > 1 && (lanes / 2 >= lines || bytes * lanes > kNearBytes)) lanes /= 2;
  part_bytes = align_up(product({bytes, lanes}));
}

Spectrum::Spectrum(Kind kind, int64_t length, int64_t lines)
    : kind_(kind), length_(length), bins_(kind == Kind::kReal ? length / 2 + 1 : length), lines_(lines) {
  const Layout layout(kind, length, lines);
  halved_ = layout.halved;
  fft_ = Fft::of(layout.fft_length, layout.bins);
  lanes_ = layout.lanes;
  part_bytes_ = layout.part_bytes;
  if (!halved_) return;
  const int64_t half = length / 2;
  require_memory(half, 2 * int64_t{sizeof(double)});
  const UseBudget uncharged(nullptr);  // like the tables of the Fft, which other devices share
  turns_ = allocate_pages(half * 2 * int64_t{sizeof(double)});
  auto* turns = reinterpret_cast<double*>(turns_.get());
  each(0, half, [&](int64_t i) { std::tie(turns[2 * i], turns[2 * i + 1]) = Fft::root(i, length); });
}

Lazy<Spectrum> Spectrum::planned(const PlanContext& context, Kind kind, int64_t length, int64_t lines) {
  const Layout layout(kind, length, lines);
  const int64_t bytes = Fft::table_bytes(layout.fft_length, layout.bins) +
                        (layout.halved ? product({length, int64_t{sizeof(double)}}) : 0);
  require_memory(bytes, 1);
  return Lazy<Spectrum>(may_build_tables(context, bytes),
                        [=] { return std::make_shared<const Spectrum>(kind, length, lines); });
}

}  // namespace backplane::cpu
