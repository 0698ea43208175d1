// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/fused_attention.h"

#include <algorithm>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/onednn/onednn.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kTile = 128;  // number of queries whose scores a thread holds at once

// A view of a four-dimensional tensor with its dimensions in another order. Batch and head are broadcast if their
// extent is 1.
struct View {
  std::array<int64_t, 4> extents, strides;

  View(const Shape& shape, const std::array<int, 4>& order) {
    const Shape dense = strides_of(shape);
    for (size_t d = 0; d < 4; ++d) {
      extents[d] = shape[order[d]];
      strides[d] = dense[order[d]];
    }
  }
  int64_t at(int64_t batch, int64_t head, int64_t row = 0) const {
    return (extents[0] == 1 ? 0 : batch * strides[0]) + (extents[1] == 1 ? 0 : head * strides[1]) + row * strides[2];
  }
  // Returns the last two dimensions as a matrix with its first element at `data`.
  Matrix matrix(const float* data) const {
    return strides[3] == 1 ? Matrix{data, strides[2]} : Matrix{data, strides[3], true};
  }
};

CLONED void add_row(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

Plan plan_attention(const PlanContext& context, const FusedAttention& a, Tensors inputs) {
  for (const Tensor& input : inputs.first(3)) {
    if (input.shape.rank() != 4)
      return fail("an operand of attention has shape " + to_string(input.shape) + "; it must have rank 4");
  }
  const View q(inputs[0].shape, a.q_order), k(inputs[1].shape, a.k_order), v(inputs[2].shape, a.v_order);
  std::array<int64_t, 2> outer;
  bool fits = q.extents[3] == k.extents[2] && k.extents[3] == v.extents[2];
  for (size_t d = 0; d < 2; ++d) {
    outer[d] = q.extents[d] == 1 ? k.extents[d] == 1 ? v.extents[d] : k.extents[d] : q.extents[d];
    for (const View* view : {&q, &k, &v}) fits = fits && (view->extents[d] == 1 || view->extents[d] == outer[d]);
  }
  if (!fits)
    return fail("queries " + to_string(inputs[0].shape) + ", keys " + to_string(inputs[1].shape) + " and values " +
                to_string(inputs[2].shape) + " do not fit each other");
  const int64_t queries = q.extents[2], size = q.extents[3], keys = k.extents[3], width = v.extents[3];
  std::array<int64_t, 4> mask{};  // strides of the mask by dimension of the scores; 0: broadcast
  if (Tensor m = at(inputs, 3); m.present()) {
    const Shape scores{outer[0], outer[1], queries, keys};
    const Shape both[] = {scores, m.shape};
    int64_t stride = 1;
    for (int d = m.shape.rank() - 1; d >= 0; --d) {
      const int at = d + 4 - m.shape.rank();
      if (at < 0 || (m.shape[d] != 1 && m.shape[d] != scores[at]))
        return fail("the mask " + to_string(both[1]) + " does not fit scores " + to_string(scores));
      mask[static_cast<size_t>(at)] = m.shape[d] == 1 ? 0 : stride;
      stride *= m.shape[d];
    }
  }
  const std::array<int64_t, 4> extents{outer[0], outer[1], queries, width};
  Shape result;
  for (size_t d = 0; d < 4; ++d) result.push_back(extents[static_cast<size_t>(a.result_order[d])]);
  std::array<int64_t, 4> strides{};  // strides of the result by dimension of `extents`
  const Shape dense = strides_of(result);
  for (size_t d = 0; d < 4; ++d) strides[static_cast<size_t>(a.result_order[d])] = dense[static_cast<int>(d)];

  const int64_t tile = std::min(kTile, queries);
  const int64_t tile_bytes = align_up(tile * keys * static_cast<int64_t>(sizeof(float)));
  auto run = [=](Tensors in, Tensors out, void* scratch) {
    if (result.elements() == 0) return;
    const int64_t tiles = (queries + kTile - 1) / kTile;
    parallel(
        outer[0] * outer[1] * tiles, 1 + processor().multiply_adds(1.024) / (1 + tile * keys * (size + width)),
        [&](int64_t begin, int64_t end) {
          SingleThreaded single;
          auto* scores = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + thread_index() * tile_bytes);
          for (int64_t job = begin; job < end; ++job) {
            const int64_t batch = job / tiles / outer[1], head = job / tiles % outer[1], first = job % tiles * kTile;
            const int64_t rows = std::min(kTile, queries - first);
            const float *key = in[1].as<float>() + k.at(batch, head), *value = in[2].as<float>() + v.at(batch, head);
            sgemm_here(rows, keys, size, a.scale, q.matrix(in[0].as<float>() + q.at(batch, head, first)), k.matrix(key),
                       0, scores, keys);
            for (int64_t r = 0; r < rows; ++r) {
              float* row = scores + r * keys;
              if (in.size() > 3) {
                const float* add = in[3].as<float>() + batch * mask[0] + head * mask[1] + (first + r) * mask[2];
                if (mask[3] != 0)
                  clone_of<add_row>(row, add, keys);
                else
                  for (int64_t j = 0; j < keys; ++j) row[j] += *add;
              }
              if (keys > 0) softmax_row(row, row, keys);
            }
            sgemm_here(rows, width, keys, a.result_scale, {scores, keys}, v.matrix(value), 0,
                       out[0].as<float>() + batch * strides[0] + head * strides[1] + first * strides[2], strides[2]);
          }
        });
  };
  return make_plan({result}, run, {.scratch_bytes = context.threads * tile_bytes});
}

}  // namespace

std::unique_ptr<Kernel> make_fused_attention(const FusedAttention& attention) {
  return make_kernel(
      [attention](const PlanContext& context, Tensors inputs) { return plan_attention(context, attention, inputs); });
}

}  // namespace backplane::cpu
