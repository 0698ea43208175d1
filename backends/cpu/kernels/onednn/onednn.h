// SPDX-License-Identifier: Apache-2.0
// The interface to oneDNN, which runs single-threaded inside parallel tasks.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>

#include "kernels/post_op/post_op.h"
#include "runtime/format.h"

namespace backplane::cpu {

// While an instance exists, oneDNN runs on the calling thread only. This is an OpenMP setting of the thread, which may
// belong to the framework, so the destructor restores it.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int before_;
};

// The number of columns that oneDNN's kernels for products compute together.
inline constexpr int64_t kColumnBlock = 64;

// A matrix in memory that the caller owns. Element (i, j) is data[i * stride + j], or data[j * stride + i] if it is
// transposed.
struct Matrix {
  const float* data;
  int64_t stride;
  bool transposed = false;
};

// C = alpha · A · B + beta · C, with A m×k, B k×n and C m×n, in parallel. C is not read if beta is 0. With `row_bias`,
// beta is ignored: C is overwritten, and row_bias[i] is added to each element of row i.
void sgemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c, int64_t c_stride,
           const float* row_bias = nullptr);

// Like sgemm, but runs on the calling thread, for use inside tasks. m and n must be positive.
void sgemm_here(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c,
                int64_t c_stride, const float* row_bias = nullptr);

dnnl::engine& onednn_engine();
// Returns the calling thread's own stream.
dnnl::stream& onednn_stream();

// Returns the descriptor of a float tensor [N, C, D1 …]. `format` is dense, or blocked if there are one to three
// spatial dimensions.
dnnl::memory::desc layout_of(const dnnl::memory::dims& dims, Format format);

// Copies a tensor to another layout, on the calling thread.
void onednn_reorder(const dnnl::memory::desc& from_layout, const void* from, const dnnl::memory::desc& to_layout,
                    void* to);

// Returns the size of a layout in bytes, rounded up to whole cache lines.
int64_t bytes_of(const dnnl::memory::desc& layout);

#if DNNL_VERSION_MAJOR >= 3
using LayoutView = const_dnnl_memory_desc_t;
#else
using LayoutView = const dnnl_memory_desc_t*;
#endif
// The memory descriptors of a primitive. They point into the primitive and are valid as long as it exists. Copies would
// take 700 bytes each.
struct PrimitiveLayouts {
  LayoutView source, weights, bias, result, scratchpad;
  PrimitiveLayouts() = default;
  explicit PrimitiveLayouts(const dnnl::primitive& primitive);
};

// One execution of a primitive. The caller must hold a SingleThreaded, or oneDNN may use other threads. Uses oneDNN's C
// API, because the C++ API would allocate memory about twenty times.
class Execution {
 public:
  Execution() = default;
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  void add(int argument, LayoutView layout, const void* data);
  void add(int argument, const dnnl::memory::desc& layout, const void* data);
  void run(const dnnl::primitive& primitive);

 private:
  static constexpr int kMost = 6;
  dnnl_exec_arg_t arguments_[kMost];
  int count_ = 0;
};

// A convolution of one image or a part of it. A descriptor of format `any` lets oneDNN choose the layout.
struct ConvolutionArguments {
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
  dnnl::memory::desc source, weights, bias, result;
  bool has_bias = false;
  dnnl::memory::desc shift;  // added to finished sums, before the post-operations; none if it has no dimensions
  dnnl::memory::dims strides, dilations, begin, end;
  std::span<const PostOp> post_ops;  // additions and activations; an addition adds the previous contents of the result
};
// Returns an empty description if oneDNN has no implementation.
dnnl::convolution_forward::primitive_desc describe_convolution(const ConvolutionArguments& arguments);

// A product of rows with known weights, or a part of it. The post-operations are applied to source · weights + bias.
struct ProductArguments {
  dnnl::memory::desc source, weights, bias, result;
  bool has_bias = false;
  std::span<const PostOp> post_ops;
};
// Returns an empty description if oneDNN has no implementation.
dnnl::matmul::primitive_desc describe_product(const ProductArguments& arguments);

// Whether the oneDNN implementation of this name is optimized, not a reference implementation.
bool is_fast(const char* implementation);

}  // namespace backplane::cpu
