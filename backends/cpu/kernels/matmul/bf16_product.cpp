// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/bf16_product.h"

#include <algorithm>
#include <cstring>

#include "kernels/matmul/bf16_tile.h"
#include "kernels/post_op/activation.h"
#include "kernels/simd/amx.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kTaskWork = int64_t{1} << 20;  // minimum multiply-adds of a task
constexpr int64_t kRowGrain = int64_t{1} << 15;  // minimum values of A that a task rounds
constexpr int64_t kTogether = 4;                 // tiles of rows that a thread rounds, then multiplies by all of B

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

class Bf16ProductStep final : public Step {
 public:
  Bf16ProductStep(int64_t threads, const KnownProduct& p, std::span<const Tensor> inputs, PackedWeights& packed,
                  int bias)
      : m_(p.m),
        n_(p.n),
        k_(p.k),
        steps_(ceil_div(p.k, kBf16Step)),
        blocks_(ceil_div(p.n, kBf16Columns)),
        tiles_(ceil_div(p.m, kMaxBf16Rows)),
        register_rows_(ceil_div(ceil_div(p.m, tiles_), ceil_div(p.m, tiles_) > amx::kTileRows ? 2 : 1)),
        by_columns_(p.n > p.m || tiles_ < 2 * threads),
        starts_(static_cast<size_t>(blocks_ * kBf16Columns)) {
    const float* shift = bias < 0 ? nullptr : inputs[static_cast<size_t>(bias)].as<float>();
    const ChannelAffine affine = join_affine(p.post_ops, n_, shift);
    if (!affine.shift.empty()) shift = affine.shift.data();
    if (shift != nullptr) std::copy_n(shift, n_, starts_.begin());
    for (const PostOp& op : p.post_ops)
      if (op.kind != PostOp::kAffine) post_ops_.push_back(op);
    const int64_t bytes = blocks_ * block_values() * int64_t{sizeof(uint16_t)};
    const dnnl::memory::desc layout({bytes / int64_t{sizeof(uint16_t)}}, dnnl::memory::data_type::bf16,
                                    dnnl::memory::format_tag::a);
    pack_ = packed.get(inputs[1], {layout}, [&] {
      std::shared_ptr<std::byte> pack(allocate_pages(bytes));
      parallel(blocks_, 1 + kRowGrain / (1 + block_values()), [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block)
          pack_block(inputs[1].as<std::byte>(), p.b_transposed, affine.scale, block,
                     reinterpret_cast<uint16_t*>(pack.get()) + block * block_values());
      });
      return pack;
    });
  }

  int64_t scratch_bytes() const override { return m_ * row_values() * int64_t{sizeof(uint16_t)}; }

  std::optional<std::string> run(std::span<const Tensor> in, std::span<const Tensor> out,
                                 void* scratch) const override {
    auto* rows = static_cast<uint16_t*>(scratch);
    auto* y = out[0].as<float>();
    const auto finish = [&](Range of_rows, Range of_columns) {
      finish_part(post_ops_, y, of_rows, of_columns, n_, in.back().as<float>());
    };
    // Threads compute either different columns, and each reads all of A, or different rows, and each reads all of B.
    if (by_columns_) {
      parallel(m_, 1 + kRowGrain / (1 + k_),
               [&](int64_t begin, int64_t end) { round_rows(in[0].as<float>(), begin, end, rows); });
      parallel(ceil_div(blocks_, 2), 1 + kTaskWork / (1 + 2 * kBf16Columns * m_ * k_), [&](int64_t begin, int64_t end) {
        const amx::TileRegisters registers(register_rows_);
        for (int64_t block = 2 * begin; block < std::min(blocks_, 2 * end); block += 2) {
          multiply(rows, y, 0, tiles_, block, std::min(blocks_, block + 2));
          finish({0, m_}, {block * kBf16Columns, std::min(n_, (block + 2) * kBf16Columns)});
        }
      });
      return std::nullopt;
    }
    parallel(tiles_, 1 + kTaskWork / (1 + kMaxBf16Rows * n_ * k_), [&](int64_t begin, int64_t end) {
      const amx::TileRegisters registers(register_rows_);
      for (int64_t tile = begin; tile < end; tile += kTogether) {
        const int64_t last = std::min(end, tile + kTogether);
        round_rows(in[0].as<float>(), first_row(tile), first_row(last), rows);
        multiply(rows, y, tile, last, 0, blocks_);
        finish({first_row(tile), first_row(last)}, {0, n_});
      }
    });
    return std::nullopt;
  }

 private:
  int64_t row_values() const { return steps_ * kBf16Step; }
  int64_t block_values() const { return row_values() * kBf16Columns; }
  int64_t first_row(int64_t tile) const { return tile * m_ / tiles_; }

  // `b` may be unaligned.
  void pack_block(const std::byte* b, bool transposed, const std::vector<float>& scale, int64_t block,
                  uint16_t* to) const {
    std::memset(to, 0, static_cast<size_t>(block_values()) * sizeof(uint16_t));
    std::vector<float> line(static_cast<size_t>(transposed ? k_ : kBf16Columns));
    std::vector<uint16_t> rounded(line.size());
    const int64_t first = block * kBf16Columns, columns = std::min(kBf16Columns, n_ - first);
    const auto element = [&](int64_t row, int64_t column) -> uint16_t& {
      return to[row / 2 * 2 * kBf16Columns + column * 2 + row % 2];
    };
    const auto round = [&](int64_t at, int64_t count, const auto& scale_of) {
      std::memcpy(line.data(), b + at * int64_t{sizeof(float)}, static_cast<size_t>(count) * sizeof(float));
      for (int64_t i = 0; i < count && !scale.empty(); ++i)
        line[static_cast<size_t>(i)] *= scale[static_cast<size_t>(scale_of(i))];
      round_to_bf16(line.data(), count, rounded.data());
    };
    if (transposed) {
      for (int64_t column = 0; column < columns; ++column) {
        round((first + column) * k_, k_, [&](int64_t) { return first + column; });
        for (int64_t row = 0; row < k_; ++row) element(row, column) = rounded[static_cast<size_t>(row)];
      }
      return;
    }
    for (int64_t row = 0; row < k_; ++row) {
      round(row * n_ + first, columns, [&](int64_t i) { return first + i; });
      for (int64_t column = 0; column < columns; ++column) element(row, column) = rounded[static_cast<size_t>(column)];
    }
  }

  void round_rows(const float* a, int64_t first, int64_t last, uint16_t* rows) const {
    for (int64_t row = first; row < last; ++row) {
      uint16_t* to = rows + row * row_values();
      round_to_bf16(a + row * k_, k_, to);
      std::fill(to + k_, to + row_values(), uint16_t{0});
    }
  }

  void multiply(const uint16_t* rows, float* y, int64_t first_tile, int64_t last_tile, int64_t first_block,
                int64_t last_block) const {
    float edge[kMaxBf16Rows * 2 * kBf16Columns];
    const auto* weights = reinterpret_cast<const uint16_t*>(pack_.get());
    for (int64_t block = first_block; block < last_block; block += 2) {
      const int64_t blocks = std::min<int64_t>(2, last_block - block), column = block * kBf16Columns;
      const bool at_edge = column + blocks * kBf16Columns > n_;
      for (int64_t tile = first_tile; tile < last_tile; ++tile) {
        const int64_t first = first_row(tile), count = first_row(tile + 1) - first;
        float* sums = y + first * n_ + column;
        const int64_t y_row = at_edge ? 2 * kBf16Columns : n_;
        multiply_bf16({rows + first * row_values(), row_values(), weights + block * block_values(), block_values(),
                       steps_, starts_.data() + column, at_edge ? edge : sums, y_row},
                      blocks, count, register_rows_);
        for (int64_t row = 0; at_edge && row < count; ++row)
          std::copy_n(edge + row * y_row, n_ - column, sums + row * n_);
      }
    }
  }

  int64_t m_, n_, k_;
  int64_t steps_, blocks_, tiles_;  // along k, n and m
  int64_t register_rows_;
  bool by_columns_;
  std::vector<float> starts_;  // biases; scales become part of the weights
  std::vector<PostOp> post_ops_;
  PackedWeights::Pack pack_;
};

}  // namespace

const char* refuse_bf16_product(const PlanContext& context, const KnownProduct& p) {
  if (!context.bf16) return "the session does not allow bf16";
  if (!has_bf16_tiles()) return "AMX is not available";
  return p.m == 0 || p.n == 0 || p.k == 0 ? "an operand or the result is empty" : nullptr;
}

Plan plan_bf16_product(const PlanContext& context, const KnownProduct& p, std::span<const Tensor> inputs,
                       PackedWeights& packed, int bias) {
  Plan plan;
  plan.step = std::make_unique<Bf16ProductStep>(context.threads, p, inputs, packed, bias);
  plan.shapes = {p.shape};
  plan.packed = 1;
  return plan;
}

}  // namespace backplane::cpu
