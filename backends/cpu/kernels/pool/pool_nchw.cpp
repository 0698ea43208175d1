// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool_nchw.h"

#include <algorithm>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"

namespace backplane::cpu {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// y[i] = maximum or sum over r of rows[r][i]; y must not alias a row.
template <bool kMaximum, int kBytes>
CLONED void join_rows(const float* const* rows, int64_t count, float* y, int64_t n) {
  using Lanes = FloatLanes<kBytes>;
  for (int64_t at = 0; at < n; at += kFloatLanes) {
    if (at + kFloatLanes > n && n < kFloatLanes) break;
    const int64_t i = std::min(at, n - kFloatLanes);  // the last vector may overlap the one before it
    Lanes joined = Lanes::load(rows[0] + i);
    for (int64_t r = 1; r < count; ++r) {
      const Lanes x = Lanes::load(rows[r] + i);
      joined = kMaximum ? x.or_larger(joined) : joined + x;
    }
    joined.store(y + i);
  }
  for (int64_t i = 0; n < kFloatLanes && i < n; ++i) {
    float joined = rows[0][i];
    for (int64_t r = 1; r < count; ++r) {
      if constexpr (kMaximum)
        joined = rows[r][i] > joined ? rows[r][i] : joined;
      else
        joined += rows[r][i];
    }
    y[i] = joined;
  }
}
constexpr auto& kJoinMaxima = clone_of<join_rows<true, 64>, join_rows<true, 32>, join_rows<true, 16>>;
constexpr auto& kJoinSums = clone_of<join_rows<false, 64>, join_rows<false, 32>, join_rows<false, 16>>;

CLONED void divide(float* y, const float* counts, float rows, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] /= rows * counts[i];
}
// Copies every second element, beginning with the first.
CLONED void take_evens(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[2 * i];
}

template <int kBytes>
CLONED float maximum(const float* x, int64_t n) {
  using Lanes = FloatLanes<kBytes>;
  Lanes tops = Lanes::all(kLowest);
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) tops = Lanes::load(x + i).or_larger(tops);
  float top = tops.largest();
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}
template <int kBytes>
CLONED float sum(const float* x, int64_t n) {
  using Lanes = FloatLanes<kBytes>;
  Lanes sums = Lanes::all(0);
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) sums = sums + Lanes::load(x + i);
  float total = sums.sum();
  for (; i < n; ++i) total += x[i];
  return total;
}

// Returns the number of input columns that the windows of an output row span, padding included.
int64_t row_length(const Window& w) {
  return (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
}

// Whether there is only one output position, which reads the whole plane.
bool is_global(const Window& w) {
  return w.out_size() == 1 && w.kernel == w.in && w.begin == Spatial{} && w.end == Spatial{} &&
         w.dilation == Spatial{1, 1, 1};
}

Plan plan_global(bool is_maximum, int64_t n, int64_t planes, const Shape& output) {
  return make_plan({output, output}, [=](Tensors in, Tensors out) {
    parallel(planes, 1 + 2 * kCheapGrain / n, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const float* x = in[0].as<float>() + p * n;
        out[0].as<float>()[p] = is_maximum ? clone_of<maximum<64>, maximum<32>, maximum<16>>(x, n)
                                           : clone_of<sum<64>, sum<32>, sum<16>>(x, n) / static_cast<float>(n);
      }
    });
  });
}

// A padded row of the input columns that the windows of an output row read. It is split into as many parts as the
// stride: part p has every stride-th element, beginning with element p. As a result, the inputs of window column j for
// all output positions are contiguous in one part.
class PaddedRow {
 public:
  PaddedRow(const Window& w, float padding)
      : w_(w),
        part_length_((row_length(w) - 1) / w.stride[2] + 1),
        row_(static_cast<size_t>(part_length_ * w.stride[2]), padding),
        parts_(w.stride[2] == 1 ? 0 : row_.size()),
        columns_(std::clamp<int64_t>(part_length_ * w.stride[2] - w.begin[2], 0, w.in[2])) {}

  float* columns() { return row_.data() + w_.begin[2]; }
  int64_t column_count() const { return columns_; }  // input columns that the row holds

  void split() {
    const int64_t stride = w_.stride[2];
    for (int64_t p = 0; stride > 1 && p < stride; ++p) {
      float* part = parts_.data() + p * part_length_;
      if (stride == 2 && p == 0) {
        clone_of<take_evens>(row_.data(), part, part_length_);
      } else if (stride == 2) {
        clone_of<take_evens>(row_.data() + 1, part, part_length_ - 1);
        part[part_length_ - 1] = row_.back();
      } else {
        for (int64_t i = 0; i < part_length_; ++i) part[i] = row_[static_cast<size_t>(i * stride + p)];
      }
    }
  }
  const float* position(int64_t j) const {
    const int64_t stride = w_.stride[2], offset = j * w_.dilation[2];
    return stride == 1 ? row_.data() + offset : parts_.data() + offset % stride * part_length_ + offset / stride;
  }

 private:
  const Window& w_;
  int64_t part_length_;
  std::vector<float> row_, parts_;
  int64_t columns_;
};

}  // namespace

bool has_short_rows(const Window& w) {
  return is_global(w) || row_length(w) + w.stride[2] <= int64_t{1} << 20;
}

Plan plan_pool_nchw(const BlockedPool& pool, const Window& w, const Shape& input, const Shape& output) {
  const int64_t planes = input[0] * input[1];
  if (is_global(w) && w.in_size() > 0) return plan_global(pool.maximum, w.in_size(), planes, output);
  std::vector<float> counts;  // for each output column, the number of input columns that are averaged
  for (const Reach& reach : reaches(w, 2))
    counts.push_back(static_cast<float>(std::max<int64_t>(1, pool.counts_padding ? reach.padded_count : reach.count)));
  return make_plan({output, output}, [=, depth = reaches(w, 0), height = reaches(w, 1), counts = std::move(counts)](
                                         Tensors in, Tensors out) {
    const auto join = pool.maximum ? kJoinMaxima : kJoinSums;
    const int64_t rows = w.out[0] * w.out[1], n = w.out[2];
    const double work = static_cast<double>(w.kernel[0] * w.kernel[1]) * static_cast<double>(w.in[2] + 1) +
                        static_cast<double>(w.kernel[2] * n);
    parallel(planes * rows, 1 + static_cast<int64_t>(kCheapGrain / work), [&](int64_t begin, int64_t end) {
      // Each step handles several rows, so that a row is not read right after it was written: an unaligned load that
      // straddles two recently stored vectors would stall.
      std::vector<PaddedRow> together(
          static_cast<size_t>(std::min(std::clamp<int64_t>((1 << 15) / row_length(w), 1, 8), end - begin)),
          PaddedRow(w, pool.maximum ? kLowest : 0));
      std::vector<const float*> sources, positions(static_cast<size_t>(w.kernel[2]));
      for (int64_t first = begin; first < end; first += static_cast<int64_t>(together.size())) {
        const std::span<PaddedRow> part(together.data(), std::min(together.size(), static_cast<size_t>(end - first)));
        int64_t task = first;
        for (PaddedRow& row : part) {
          const float* plane = in[0].as<float>() + task / rows * w.in_size();
          const Reach& z = depth[static_cast<size_t>(task % rows / w.out[1])];
          const Reach& y = height[static_cast<size_t>(task % w.out[1])];
          sources.clear();
          for (int64_t i = 0; i < z.count; ++i) {
            for (int64_t j = 0; j < y.count; ++j) {
              const int64_t at = (z.first + i * w.dilation[0]) * w.in[1] + y.first + j * w.dilation[1];
              sources.push_back(plane + at * w.in[2]);
            }
          }
          if (sources.empty())
            std::fill_n(row.columns(), row.column_count(), pool.maximum ? kLowest : 0);
          else
            join(sources.data(), static_cast<int64_t>(sources.size()), row.columns(), row.column_count());
          ++task;
        }
        for (PaddedRow& row : part) row.split();
        task = first;
        for (const PaddedRow& row : part) {
          for (int64_t j = 0; j < w.kernel[2]; ++j) positions[static_cast<size_t>(j)] = row.position(j);
          float* result = out[0].as<float>() + task * n;
          join(positions.data(), w.kernel[2], result, n);
          const Reach& z = depth[static_cast<size_t>(task % rows / w.out[1])];
          const Reach& y = height[static_cast<size_t>(task % w.out[1])];
          const int64_t read = pool.counts_padding ? z.padded_count * y.padded_count : z.count * y.count;
          if (!pool.maximum) clone_of<divide>(result, counts.data(), static_cast<float>(std::max<int64_t>(1, read)), n);
          ++task;
        }
      }
    });
  });
}

}  // namespace backplane::cpu
