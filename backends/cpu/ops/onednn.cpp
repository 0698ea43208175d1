// SPDX-License-Identifier: Apache-2.0
#include "ops/onednn.h"

#include <omp.h>

#include <algorithm>

#include "engine/kernel.h"
#include "engine/threads.h"

namespace backplane::cpu {

namespace {

// Multiply-adds below which a task is not worth its start, and the sides of the blocks that oneDNN's kernels like.
constexpr int64_t kTaskWork = 1 << 18;
constexpr int64_t kRowBlock = 16;
constexpr int64_t kColumnBlock = 64;

int64_t offset(const Matrix& matrix, int64_t row, int64_t column) {
  return matrix.transposed ? column * matrix.stride + row : row * matrix.stride + column;
}

void sgemm_piece(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c, int64_t c_stride,
                 const float* row_bias) {
  SingleThreaded single;
  if (row_bias != nullptr) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_stride, n, row_bias[i]);
    beta = 1;
  }
  dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, std::max<int64_t>(a.stride, 1), b.data,
             std::max<int64_t>(b.stride, 1), beta, c, c_stride);
}

}  // namespace

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

dnnl::convolution_forward::primitive_desc make_convolution(const ConvolutionArguments& a) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // one primitive serves many threads
  constexpr auto kind = dnnl::prop_kind::forward_inference;
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  if (a.has_bias) {
    return {onednn_engine(), kind, algorithm, a.source, a.weights, a.bias, a.result, a.strides, a.dilations, a.begin, a.end, attributes};
  }
  return {onednn_engine(), kind, algorithm, a.source, a.weights, a.result, a.strides, a.dilations, a.begin, a.end, attributes};
#else
  if (a.has_bias) {
    return {{kind, algorithm, a.source, a.weights, a.bias, a.result, a.strides, a.dilations, a.begin, a.end}, attributes, onednn_engine()};
  }
  return {{kind, algorithm, a.source, a.weights, a.result, a.strides, a.dilations, a.begin, a.end}, attributes, onednn_engine()};
#endif
}

SingleThreaded::SingleThreaded() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
SingleThreaded::~SingleThreaded() {
  if (before_ != 1) omp_set_num_threads(before_);
}

void sgemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c, int64_t c_stride,
           const float* row_bias) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        c[i * c_stride + j] = row_bias != nullptr ? row_bias[i] : beta == 0 ? 0 : beta * c[i * c_stride + j];
      }
    }
    return;
  }
  // The longer side is cut, so that each task packs little of what others pack too.
  bool by_columns = n >= m;
  int64_t side = by_columns ? n : m;
  int64_t block = by_columns ? kColumnBlock : kRowBlock;
  int64_t blocks = (side + block - 1) / block;
  int64_t work_per_block = std::max<int64_t>(1, block * k * (by_columns ? m : n));
  int64_t per_thread = (blocks + 2 * thread_count() - 1) / (2 * thread_count());
  int64_t grain = std::max(per_thread, (kTaskWork + work_per_block - 1) / work_per_block);
  parallel(blocks, grain, [&](int64_t begin, int64_t end) {
    int64_t first = begin * block;
    int64_t count = std::min(end * block, side) - first;
    if (by_columns) {
      Matrix part{b.data + offset(b, 0, first), b.stride, b.transposed};
      sgemm_piece(m, count, k, alpha, a, part, beta, c + first, c_stride, row_bias);
    } else {
      Matrix part{a.data + offset(a, first, 0), a.stride, a.transposed};
      sgemm_piece(count, n, k, alpha, part, b, beta, c + first * c_stride, c_stride,
                  row_bias == nullptr ? nullptr : row_bias + first);
    }
  });
}

}  // namespace backplane::cpu
