// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/blocked_pool.h"

#include <algorithm>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"

namespace backplane::cpu {

std::vector<Reach> reaches(const Window& w, size_t d) {
  require_memory(w.out[d], 2 * int64_t{sizeof(Reach)});
  std::vector<Reach> all;
  for (int64_t o = 0; o < w.out[d]; ++o) {
    int64_t start = o * w.stride[d] - w.begin[d];
    int64_t skipped = start >= 0 ? 0 : (-start + w.dilation[d] - 1) / w.dilation[d];
    auto positions_before = [&](int64_t limit) {
      return std::clamp<int64_t>((limit - start + w.dilation[d] - 1) / w.dilation[d], 0, w.kernel[d]);
    };
    all.push_back({start + skipped * w.dilation[d], std::max<int64_t>(0, positions_before(w.in[d]) - skipped),
                   positions_before(w.in[d] + w.end[d])});
  }
  return all;
}

namespace {

// Consecutive outputs of one row. Output o reads the positions reach[o] of all `rows`.
struct RowTask {
  const float* const* rows;
  int64_t row_count;
  const Reach* reach;
  int64_t step;   // positions from one input to the next
  int64_t count;  // number of output positions
  int64_t padded_rows;
  bool counts_padding;
};

// A `Lanes` holds the channels of one block at one position.
template <class Lanes, bool kMaximum>
CLONED void pool_row(const RowTask& t, float* y) {
  for (int64_t o = 0; o < t.count; ++o, y += Lanes::kCount) {
    Lanes joined = Lanes::all(kMaximum ? -std::numeric_limits<float>::infinity() : 0.0f);
    const Reach& reach = t.reach[o];
    for (int64_t r = 0; r < t.row_count; ++r) {
      const float* from = t.rows[r] + reach.first * Lanes::kCount;
      for (int64_t i = 0; i < reach.count; ++i, from += t.step * Lanes::kCount) {
        const Lanes x = Lanes::load(from);
        joined = kMaximum ? x.or_larger(joined) : joined + x;
      }
    }
    if constexpr (!kMaximum) {
      const float positions = t.counts_padding
                                  ? static_cast<float>(t.padded_rows) * static_cast<float>(reach.padded_count)
                                  : static_cast<float>(t.row_count * reach.count);
      joined = joined * Lanes::all(1.0f / (positions > 1 ? positions : 1.0f));
    }
    joined.store(y);
  }
}

// The functions for blocks of 8 and of 16 channels.
template <bool kMaximum>
constexpr auto& kPool8 = clone_of<pool_row<FloatLanes<32, 1>, kMaximum>, pool_row<FloatLanes<32, 1>, kMaximum>,
                                  pool_row<FloatLanes<16, 2>, kMaximum>>;
template <bool kMaximum>
constexpr auto& kPool16 = clone_of<pool_row<FloatLanes<64>, kMaximum>, pool_row<FloatLanes<32>, kMaximum>,
                                   pool_row<FloatLanes<16>, kMaximum>>;

}  // namespace

Plan plan_blocked_pool(const BlockedPool& pool, const Window& w, const Shape& input, const Shape& output) {
  const int64_t lanes = channel_block();
  const int64_t planes = input[0] * ((input[1] + lanes - 1) / lanes);
  auto row =
      pool.maximum ? (lanes == 16 ? kPool16<true> : kPool8<true>) : (lanes == 16 ? kPool16<false> : kPool8<false>);
  Plan plan = make_plan({output, output}, [=, depth = reaches(w, 0), height = reaches(w, 1), width = reaches(w, 2)](
                                              Tensors in, Tensors out) {
    const int64_t rows = w.out[0] * w.out[1];
    const double work = 1 + w.reads() * static_cast<double>(w.out[2] * lanes);
    parallel(planes * rows, 1 + static_cast<int64_t>(kCheapGrain / work), [&](int64_t begin, int64_t end) {
      std::vector<const float*> sources;
      for (int64_t task = begin; task < end; ++task) {
        const float* plane = in[0].as<float>() + task / rows * w.in_size() * lanes;
        const Reach& z = depth[static_cast<size_t>(task % rows / w.out[1])];
        const Reach& y = height[static_cast<size_t>(task % w.out[1])];
        sources.clear();
        for (int64_t i = 0; i < z.count; ++i) {
          for (int64_t j = 0; j < y.count; ++j) {
            int64_t at = (z.first + i * w.dilation[0]) * w.in[1] + y.first + j * w.dilation[1];
            sources.push_back(plane + at * w.in[2] * lanes);
          }
        }
        row({sources.data(), std::ssize(sources), width.data(), w.dilation[2], w.out[2],
             z.padded_count * y.padded_count, pool.counts_padding},
            out[0].as<float>() + task * w.out[2] * lanes);
      }
    });
    if (pool.maximum) clear_padding(out[0]);
  });
  plan.input_formats = {Format::kBlocked};
  plan.output_format = Format::kBlocked;
  return plan;
}

}  // namespace backplane::cpu
