// SPDX-License-Identifier: Apache-2.0
// com.microsoft EmbedLayerNormalization, the first layer of BERT: the sum of a word's, a position's and a segment's
// embedding, normalized over its elements.
#include <array>
#include <vector>

#include "kernels/common/float16_array.h"
#include "kernels/common/function_kernel.h"
#include "kernels/float16/compute_type.h"
#include "kernels/normalization/normalized_row.h"
#include "kernels/simd/clones.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

enum Slot : size_t { kWordIds, kSegmentIds, kWords, kPositions, kSegments, kGamma, kBeta, kMask, kPositionIds };
enum Result : size_t { kNormalized, kLengths, kSum };

CLONED void add_row(float* sum, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

// A matrix of embeddings, and the row that each position of the input reads.
struct Lookup {
  const char* name;
  Tensor table;
  const int32_t* ids;      // null: position i reads row i if `counts`, otherwise row 0
  int64_t batch_step = 0;  // elements of `ids` from one batch to the next
  bool counts = false;     // true for position_embedding only

  int64_t row(int64_t batch, int64_t position) const {
    return ids != nullptr ? ids[batch * batch_step + position] : counts ? position : 0;
  }
};

struct Extents {
  int64_t batch, length, width;
};

// The lookups in the order in which their rows are added.
std::vector<Lookup> lookups_of(const Extents& e, Tensors in) {
  const Tensor position_ids = at(in, kPositionIds);
  std::vector<Lookup> all = {
      {"input_ids", in[kWords], in[kWordIds].as<int32_t>(), e.length},
      {"position_ids", in[kPositions], position_ids.present() ? position_ids.as<int32_t>() : nullptr,
       position_ids.present() && position_ids.shape[0] == e.batch ? e.length : 0, true}};
  if (in[kSegments].present())
    all.push_back(
        {"segment_ids", in[kSegments], in[kSegmentIds].present() ? in[kSegmentIds].as<int32_t>() : nullptr, e.length});
  return all;
}

std::optional<std::string> wrong_id(const Extents& e, std::span<const Lookup> lookups) {
  for (const Lookup& lookup : lookups) {
    for (int64_t b = 0; b < e.batch; ++b) {
      for (int64_t i = 0; i < e.length; ++i) {
        const int64_t row = lookup.row(b, i);
        if (row >= 0 && row < lookup.table.shape[0]) continue;
        return std::string(lookup.name) + " of batch " + std::to_string(b) + ", position " + std::to_string(i) +
               " is " + std::to_string(row) + ", but its embedding has " + std::to_string(lookup.table.shape[0]) +
               " rows";
      }
    }
  }
  return std::nullopt;
}

// Adds a row of n numbers of the table to `sum`, or with `first` copies it there. `widened` has room for n floats and
// is used if the table has 16-bit floats.
void add_embedding(const Lookup& lookup, int64_t row, int64_t n, bool first, float* sum, float* widened) {
  const Tensor& table = lookup.table;
  const auto* from = table.as<std::byte>() + row * n * (is_16_bit_float(table.dtype) ? 2 : 4);
  if (is_16_bit_float(table.dtype)) {
    widen(table.dtype, from, first ? sum : widened, n);
    if (!first) clone_of<add_row>(sum, widened, n);
  } else if (first) {
    std::copy_n(reinterpret_cast<const float*>(from), n, sum);
  } else {
    clone_of<add_row>(sum, reinterpret_cast<const float*>(from), n);
  }
}

void store_row(const float* from, const Tensor& to, int64_t row, int64_t n) {
  if (is_16_bit_float(to.dtype))
    narrow(to.dtype, from, to.as<std::byte>() + row * n * 2, n);
  else
    std::copy_n(from, n, to.as<float>() + row * n);
}

// Writes the number of ones in the mask of each sequence of the batch, or 0 without a mask.
void count_mask(const Extents& e, const Tensor& mask, const Tensor& lengths) {
  for (int64_t b = 0; b < e.batch; ++b) {
    const int32_t* own = mask.present() ? mask.as<int32_t>() + b * e.length : nullptr;
    lengths.as<int32_t>()[b] = own == nullptr ? 0 : static_cast<int32_t>(std::count(own, own + e.length, 1));
  }
}

std::optional<std::string> run(const Extents& e, float epsilon, bool plain, Tensors in, Tensors out) {
  const std::vector<Lookup> lookups = lookups_of(e, in);
  if (std::optional<std::string> wrong = wrong_id(e, lookups)) return wrong;
  if (const Tensor lengths = at(out, kLengths); lengths.present()) count_mask(e, at(in, kMask), lengths);
  std::vector<float> gamma_store, beta_store;
  const float *gamma = as_compute(in[kGamma], gamma_store), *beta = as_compute(in[kBeta], beta_store);
  const Tensor sums = at(out, kSum);
  const int64_t n = e.width;
  parallel(n == 0 ? 0 : e.batch * e.length, 1 + kCheapGrain / (1 + 2 * n), [&](int64_t begin, int64_t end) {
    std::vector<float> sum(static_cast<size_t>(n)), other(static_cast<size_t>(n));
    for (int64_t r = begin; r < end; ++r) {
      for (const Lookup& lookup : lookups)
        add_embedding(lookup, lookup.row(r / e.length, r % e.length), n, &lookup == lookups.data(), sum.data(),
                      other.data());
      if (sums.present()) store_row(sum.data(), sums, r, n);
      float* y = is_16_bit_float(out[0].dtype) ? other.data() : out[0].as<float>() + r * n;
      normalized_row(plain, sum.data(), gamma, beta, epsilon, true, y, n);
      if (is_16_bit_float(out[0].dtype)) store_row(y, out[0], r, n);
    }
  });
  return std::nullopt;
}

Plan plan(const PlanContext& context, float epsilon, Tensors in) {
  const Shape &ids = in[kWordIds].shape, &words = in[kWords].shape;
  const auto mismatch = [&](size_t slot, const char* name) {
    return fail(std::string(name) + " " + to_string(in[slot].shape) + " does not fit input_ids " + to_string(ids) +
                " and word_embedding " + to_string(words));
  };
  if (ids.rank() != 2) return fail("input_ids has shape " + to_string(ids) + "; it must have two dimensions");
  if (words.rank() != 2) return fail("word_embedding has shape " + to_string(words) + "; it must have two dimensions");
  const Extents e{ids[0], ids[1], words[1]};
  if (at(in, kSegmentIds).present() && !(in[kSegmentIds].shape == ids)) return mismatch(kSegmentIds, "segment_ids");
  if (at(in, kMask).present() && !(in[kMask].shape == ids)) return mismatch(kMask, "mask");
  const auto fits_table = [&](size_t slot) { return in[slot].shape.rank() == 2 && in[slot].shape[1] == e.width; };
  if (!fits_table(kPositions)) return mismatch(kPositions, "position_embedding");
  if (in[kSegments].present() && !fits_table(kSegments)) return mismatch(kSegments, "segment_embedding");
  if (!(in[kGamma].shape == Shape{e.width})) return mismatch(kGamma, "gamma");
  if (!(in[kBeta].shape == Shape{e.width})) return mismatch(kBeta, "beta");
  if (const Shape& position_ids = at(in, kPositionIds).shape; at(in, kPositionIds).present()) {
    if (!(position_ids == ids) && !(position_ids == Shape{1, e.length})) return mismatch(kPositionIds, "position_ids");
  }
  const Shape y{e.batch, e.length, e.width};
  return make_plan({y, Shape{e.batch}, y}, [e, epsilon, plain = context.reference](Tensors inputs, Tensors outputs) {
    return run(e, epsilon, plain, inputs, outputs);
  });
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16), kIds = just(BP_DTYPE_INT32);
  // accepts() can require only the first inputs, but segment_ids and segment_embedding precede required ones and may be
  // omitted. The required inputs are therefore checked below.
  if (Verdict v = accepts(node, 1, {kIds, kIds, kReals, kReals, kReals, kReals, kReals, kIds, kIds}); !v) return v;
  for (uint32_t slot : {kWords, kPositions, kGamma, kBeta})
    if (!node.has_input(slot)) return no(BP_REASON_OPSET, "input " + std::to_string(slot) + " is missing");
  for (uint32_t slot : {kPositions, kSegments, kGamma, kBeta})
    if (node.has_input(slot))
      if (Verdict v = same_type(node, kWords, slot); !v) return v;
  if (node.has_input(kSegmentIds) && !node.has_input(kSegments))
    return no(BP_REASON_OPSET, "segment_ids has no segment_embedding");
  if (const float epsilon = node.attr("epsilon", 1e-12f); !(epsilon >= 0))
    return no(BP_REASON_ATTRIBUTE, "epsilon is " + std::to_string(epsilon) + ", but it must not be negative");
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([epsilon = node.attr("epsilon", 1e-12f)](const PlanContext& context, Tensors in) {
    return plan(context, epsilon, in);
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> embed_layer_norm_rows() {
  static constexpr Row kRows[] = {
      {kMicrosoft, "EmbedLayerNormalization", 1, supports, create},
  };
  return kRows;
}

}  // namespace backplane::cpu
