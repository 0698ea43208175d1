// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/panels.h"

#include <algorithm>
#include <cstring>

#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

// Returns how many bytes of weights fit in the second-level cache together with the input and the prefetched weights:
// 192 KB of 1 MB.
int64_t chunk_bytes() {
  return processor().l2_bytes * 3 / 16;
}

// Pairs blocks of output channels, unless a pair would read many more input channels than its two blocks do separately.
std::vector<OutBlocks> pair_blocks(const ConvSize& size, int64_t taps) {
  const int64_t lanes = channel_block(), in_group = size.in_channels / size.groups;
  const int64_t out_group = size.out_channels / size.groups, all = blocks_of(size.out_channels);
  auto reads = [&](int64_t block, int64_t count) {
    const int64_t last_channel = std::min((block + count) * lanes, size.out_channels) - 1;
    return OutBlocks{block, count, block * lanes / out_group * in_group, (last_channel / out_group + 1) * in_group, 0};
  };
  auto work = [](const OutBlocks& b) { return (b.last - b.first) * b.count; };
  std::vector<OutBlocks> result;
  int64_t at = 0;
  for (int64_t b = 0; b < all; b += result.back().count) {
    OutBlocks next = reads(b, 1);
    if (b + 1 < all) {
      const OutBlocks both = reads(b, 2);
      if (10 * work(both) <= 11 * (work(next) + work(reads(b + 1, 1)))) next = both;
    }
    next.weights_at = at;
    at += work(next) * taps * lanes;
    result.push_back(next);
  }
  return result;
}

}  // namespace

int64_t blocks_of(int64_t channels) {
  return (channels + channel_block() - 1) / channel_block();
}

Panels::Panels(const ConvSize& size, int64_t taps) : size_(size), taps_(taps), blocks_(pair_blocks(size, taps)) {
  const int64_t lanes = channel_block();
  int64_t longest = 1;
  for (const OutBlocks& b : blocks_) longest = std::max(longest, blocks_of(b.last) - b.first / lanes);
  const int64_t most = std::max<int64_t>(1, chunk_bytes() / (2 * lanes * lanes * taps_ * int64_t{sizeof(float)}));
  const int64_t chunks = (longest + most - 1) / most;
  chunk_ = (longest + chunks - 1) / chunks * lanes;
}

int64_t Panels::count() const {
  const OutBlocks& last = blocks_.back();
  return last.weights_at + (last.last - last.first) * last.count * taps_ * channel_block();
}

int64_t Panels::chunk_end(const OutBlocks& b, int64_t first) const {
  return std::min(b.last, first / channel_block() * channel_block() + chunk_);
}

std::shared_ptr<std::byte> Panels::pack(const std::byte* from, bool transposed, const std::vector<float>& scale,
                                        std::span<const int64_t> tap_at) const {
  const int64_t bytes = count() * static_cast<int64_t>(sizeof(float));
  std::shared_ptr<std::byte> memory(allocate_pages(bytes));
  auto* to = reinterpret_cast<float*>(memory.get());
  parallel(static_cast<int64_t>(blocks_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const OutBlocks& b = blocks_[static_cast<size_t>(i)];
      const int64_t floats = (b.last - b.first) * b.count * taps_ * channel_block();
      std::fill_n(to + b.weights_at, floats, 0.0f);
      if (transposed)
        pack_transposed(from, scale, b, to + b.weights_at);
      else
        pack_rows(from, scale, tap_at, b, to + b.weights_at);
    }
  });
  return memory;
}

void Panels::pack_rows(const std::byte* from, const std::vector<float>& scale, std::span<const int64_t> tap_at,
                       const OutBlocks& b, float* to) const {
  const int64_t lanes = channel_block(), width = b.count * lanes;
  const int64_t in_group = size_.in_channels / size_.groups, out_group = size_.out_channels / size_.groups;
  const int64_t given = tap_at.empty() ? taps_ : 1 + *std::ranges::max_element(tap_at);  // taps in `from`
  std::vector<float> row(static_cast<size_t>(in_group * given));
  for (int64_t o = b.block * lanes; o < std::min((b.block + b.count) * lanes, size_.out_channels); ++o) {
    std::memcpy(row.data(), from + o * in_group * given * static_cast<int64_t>(sizeof(float)),
                row.size() * sizeof(float));
    const float factor = scale.empty() ? 1.0f : scale[static_cast<size_t>(o)];
    const int64_t own = o / out_group * in_group;  // the first input channel of its group
    for (int64_t first = b.first, end = 0; first < b.last; first = end) {
      end = std::min(b.last, (first / lanes + 1) * lanes);  // end of the block of input channels
      float* block = to + (first - b.first) * taps_ * width + o - b.block * lanes;
      for (int64_t c = std::max(first, own); c < std::min(end, own + in_group); ++c) {
        for (int64_t tap = 0; tap < taps_; ++tap) {
          const int64_t at = tap_at.empty() ? tap : tap_at[static_cast<size_t>(tap)];
          if (at < 0) continue;
          block[(tap * (end - first) + c - first) * width] = row[static_cast<size_t>((c - own) * given + at)] * factor;
        }
      }
    }
  }
}

void Panels::pack_transposed(const std::byte* from, const std::vector<float>& scale, const OutBlocks& b,
                             float* to) const {
  const int64_t lanes = channel_block(), width = b.count * lanes, first = b.block * lanes;
  const int64_t columns = std::min(width, size_.out_channels - first);
  for (int64_t c = b.first; c < b.last; ++c) {
    float* line = to + (c - b.first) * width;
    std::memcpy(line, from + (c * size_.out_channels + first) * static_cast<int64_t>(sizeof(float)),
                static_cast<size_t>(columns) * sizeof(float));
    for (int64_t j = 0; j < columns && !scale.empty(); ++j) line[j] *= scale[static_cast<size_t>(first + j)];
  }
}

}  // namespace backplane::cpu
