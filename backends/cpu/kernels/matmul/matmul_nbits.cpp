// SPDX-License-Identifier: Apache-2.0
// com.microsoft MatMulNBits: A times the transpose of weights that are stored in blocks of 2-, 4- or 8-bit values. If
// the blocks are in order (without g_idx) and is_whole_nbits_block accepts their size, multiply_nbits unpacks them just
// before use. Otherwise, and in reference mode, they are unpacked into memory, a few columns at a time.
#include "kernels/common/function_kernel.h"
#include "kernels/common/small_types.h"
#include "kernels/common/support.h"
#include "kernels/float16/compute_type.h"
#include "kernels/matmul/gemm_nbits.h"
#include "kernels/onednn/onednn.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

enum Slot : size_t { kA, kB, kScales, kZeros, kGroups, kBias };

struct Weights {
  int64_t k, n, bits, block;
  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t blob() const { return block * bits / 8; }               // bytes of a block
  int64_t zero_row() const { return (blocks() * bits + 7) / 8; }  // bytes of a column's packed zero points
};

// Writes column n of the weights to `column`, as k floats.
void dequantize(const Weights& w, int64_t n, const uint8_t* packed, const float* scales, const Tensor& zeros,
                const float* float_zeros, const int32_t* groups, float* column) {
  const auto bits = static_cast<int>(w.bits);
  const uint8_t* own = packed + n * w.blocks() * w.blob();
  const auto zero_of = [&](int64_t block) -> float {
    if (float_zeros != nullptr) return float_zeros[n * w.blocks() + block];
    if (!zeros.present()) return static_cast<float>(1 << (bits - 1));
    return load_bits(zeros.as<uint8_t>() + n * w.zero_row(), bits, block);
  };
  if (groups != nullptr) {
    for (int64_t i = 0; i < w.k; ++i)
      column[i] =
          (static_cast<float>(load_bits(own, bits, i)) - zero_of(groups[i])) * scales[n * w.blocks() + groups[i]];
    return;
  }
  for (int64_t b = 0; b < w.blocks(); ++b) {
    const float scale = scales[n * w.blocks() + b], zero = zero_of(b);
    const uint8_t* blob = own + b * w.blob();
    float* to = column + b * w.block;
    const int64_t count = std::min(w.block, w.k - b * w.block);
    if (bits == 4) {
      for (int64_t i = 0; i + 1 < count; i += 2) {
        to[i] = (static_cast<float>(blob[i / 2] & 15) - zero) * scale;
        to[i + 1] = (static_cast<float>(blob[i / 2] >> 4) - zero) * scale;
      }
      if (count % 2 != 0) to[count - 1] = (static_cast<float>(blob[count / 2] & 15) - zero) * scale;
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = (static_cast<float>(load_bits(blob, bits, i)) - zero) * scale;
    }
  }
}

// Multiplies with multiply_nbits, which reads the packed weights.
void multiply(const Weights& w, int64_t m, const float* a, const uint8_t* packed, const float* scales,
              const Tensor& zeros, const float* float_zeros, float* y) {
  const NbitsColumns all{w.bits, w.block, w.blocks(), packed, scales, float_zeros};
  std::vector<float> rows(static_cast<size_t>(m * all.length()));
  parallel(m, 1 + kCheapGrain / all.length(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      arrange_nbits_row(w.bits, a + row * w.k, w.k, all.length(), rows.data() + row * all.length());
  });
  constexpr int64_t kColumns = 64;
  parallel((w.n + kColumns - 1) / kColumns, 1 + (1 << 15) / (kColumns * all.length()), [&](int64_t begin, int64_t end) {
    std::vector<float> own_zeros, scratch;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kColumns, count = std::min(kColumns, w.n - first);
      NbitsColumns b = all;
      b.packed += first * all.column_bytes();
      b.scales += first * b.blocks;
      if (float_zeros != nullptr) {
        b.zeros += first * b.blocks;
      } else if (zeros.present()) {
        own_zeros.resize(static_cast<size_t>(kColumns * b.blocks));
        for (int64_t i = 0; i < count * b.blocks; ++i)
          own_zeros[static_cast<size_t>(i)] = load_bits(zeros.as<uint8_t>() + (first + i / b.blocks) * w.zero_row(),
                                                        static_cast<int>(w.bits), i % b.blocks);
        b.zeros = own_zeros.data();
      }
      multiply_nbits(b, rows.data(), m, count, y + first, w.n, scratch);
    }
  });
}

std::optional<std::string> run(const Weights& w, int64_t m, bool plain, Tensors in, Tensors out) {
  const Tensor zeros = at(in, kZeros), bias = at(in, kBias);
  const int32_t* groups = at(in, kGroups).as<int32_t>();
  for (int64_t i = 0; groups != nullptr && i < w.k; ++i)
    if (groups[i] < 0 || groups[i] >= w.blocks())
      return "g_idx contains " + std::to_string(groups[i]) + ", but there are " + std::to_string(w.blocks()) +
             " groups";
  std::vector<float> a_store, scale_store, zero_store, bias_store, y_store;
  const float *a = as_compute(in[kA], a_store), *scales = as_compute(in[kScales], scale_store);
  const bool real_zeros = zeros.present() && zeros.dtype != BP_DTYPE_UINT8;
  const float* float_zeros = real_zeros ? as_compute(zeros, zero_store) : nullptr;
  const float* shift = bias.present() ? as_compute(bias, bias_store) : nullptr;
  float* y = result_buffer(out[0], y_store);
  if (groups == nullptr && is_whole_nbits_block(w.bits, w.block) && !plain) {
    multiply(w, m, a, in[kB].as<uint8_t>(), scales, zeros, float_zeros, y);
    for (int64_t i = 0; shift != nullptr && i < m * w.n; ++i) y[i] += shift[i % w.n];
    store_result(out[0], y_store);
    return std::nullopt;
  }
  constexpr int64_t kColumns = 16;
  parallel((w.n + kColumns - 1) / kColumns, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> columns(static_cast<size_t>(kColumns * w.k));
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kColumns, count = std::min(kColumns, w.n - first);
      for (int64_t i = 0; i < count; ++i)
        dequantize(w, first + i, in[kB].as<uint8_t>(), scales, zeros, float_zeros, groups, columns.data() + i * w.k);
      sgemm(m, count, w.k, 1, {a, w.k}, {columns.data(), w.k, true}, 0, y + first, w.n);
      for (int64_t row = 0; shift != nullptr && row < m; ++row)
        for (int64_t i = first; i < first + count; ++i) y[row * w.n + i] += shift[i];
    }
  });
  store_result(out[0], y_store);
  return std::nullopt;
}

Plan plan(const PlanContext& context, const Weights& w, Tensors in) {
  const Shape& a = in[kA].shape;
  const Tensor zeros = at(in, kZeros), groups = at(in, kGroups), bias = at(in, kBias);
  if (a.rank() < 1 || a[a.rank() - 1] != w.k)
    return fail("A " + to_string(a) + " must have rows of K = " + std::to_string(w.k) + " elements");
  const int64_t zero_count = zeros.dtype == BP_DTYPE_UINT8 ? w.n * w.zero_row() : w.n * w.blocks();
  const auto misfit = [&](const std::string& name, const Shape& shape) {
    return fail(name + " of shape " + to_string(shape) + " does not fit K = " + std::to_string(w.k) +
                ", N = " + std::to_string(w.n) + ", bits = " + std::to_string(w.bits) +
                ", block_size = " + std::to_string(w.block));
  };
  if (in[kB].shape.elements() != w.n * w.blocks() * w.blob()) return misfit("B", in[kB].shape);
  if (in[kScales].shape.elements() != w.n * w.blocks()) return misfit("scales", in[kScales].shape);
  if (zeros.present() && zeros.shape.elements() != zero_count) return misfit("zero_points", zeros.shape);
  if (groups.present() && groups.shape.elements() < w.k) return misfit("g_idx", groups.shape);
  if (bias.present() && bias.shape.elements() != w.n) return misfit("bias", bias.shape);
  Shape shape = a;
  shape[a.rank() - 1] = w.n;
  const int64_t m = a.elements(0, a.rank() - 1);
  return make_plan({shape}, [w, m, plain = context.reference](Tensors inputs, Tensors outputs) {
    return run(w, m, plain, inputs, outputs);
  });
}

Weights weights_of(const Node& node) {
  return {node.attr("K", int64_t{0}), node.attr("N", int64_t{0}), node.attr("bits", int64_t{4}),
          node.attr("block_size", int64_t{0})};
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16) | just(BP_DTYPE_BFLOAT16);
  constexpr bp_dtype_set_t kPacked = just(BP_DTYPE_UINT8);
  if (Verdict v = accepts(node, 3, {kReals, kPacked, kReals, kReals | kPacked, just(BP_DTYPE_INT32), kReals}); !v)
    return v;
  const Weights w = weights_of(node);
  if (w.bits != 2 && w.bits != 4 && w.bits != 8)
    return no(BP_REASON_ATTRIBUTE, "bits is " + std::to_string(w.bits) + "; it must be 2, 4 or 8");
  if (w.block < 16 || w.block > INT32_MAX || (w.block & (w.block - 1)) != 0)
    return no(BP_REASON_ATTRIBUTE,
              "block_size is " + std::to_string(w.block) + "; it must be a power of two, 16 to 2^30");
  if (w.k < 1 || w.n < 1 || w.k > INT32_MAX || w.n > INT32_MAX)
    return no(BP_REASON_ATTRIBUTE,
              "K is " + std::to_string(w.k) + " and N is " + std::to_string(w.n) + "; both must be 1 to 2^31 - 1");
  if (node.attr("weight_prepacked", int64_t{0}) != 0)
    return no(BP_REASON_ATTRIBUTE, "weight_prepacked is set, which is not supported");
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel(
      [w = weights_of(node)](const PlanContext& context, Tensors inputs) { return plan(context, w, inputs); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> matmul_nbits_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "MatMulNBits", 1, supports, create}.in_fp32(0b1100),
  };
  return kRows;
}

}  // namespace backplane::cpu
