// SPDX-License-Identifier: Apache-2.0
#include "kernels/onednn/onednn.h"

#include <algorithm>

#include "runtime/kernel.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"
#include "runtime/thread_state.h"
#include "runtime/watch.h"

// Functions of libgomp, the OpenMP library that oneDNN uses. They are declared here because not every compiler has
// the header omp.h.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int count);

namespace backplane::cpu {

namespace {

// A task of less than kTaskTime microseconds is not worth starting. Rows and columns are cut into blocks of kRowBlock
// and kColumnBlock, which suit the kernels of oneDNN.
constexpr double kTaskTime = 2.048;
constexpr int64_t kWatchedWork = int64_t{1} << 28;  // maximum multiply-adds per call in a run that may end early
constexpr int64_t kRowBlock = 16;

int64_t offset(const Matrix& matrix, int64_t row, int64_t column) {
  return matrix.transposed ? column * matrix.stride + row : row * matrix.stride + column;
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

Execution::~Execution() {
  for (int i = 0; i < count_; ++i) dnnl_memory_destroy(arguments_[i].memory);
}

PrimitiveLayouts::PrimitiveLayouts(const dnnl::primitive& primitive) {
  const_dnnl_primitive_desc_t description = nullptr;
  dnnl::error::wrap_c_api(dnnl_primitive_get_primitive_desc(primitive.get(), &description),
                          "cannot query the description of a oneDNN primitive");
  auto query = [&](dnnl_query_t what) { return dnnl_primitive_desc_query_md(description, what, 0); };
  source = query(dnnl_query_src_md);
  weights = query(dnnl_query_weights_md);
  bias = dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 1);
  result = query(dnnl_query_dst_md);
  scratchpad = query(dnnl_query_scratchpad_md);
}

void Execution::add(int argument, const dnnl::memory::desc& layout, const void* data) {
#if DNNL_VERSION_MAJOR >= 3
  add(argument, layout.get(), data);
#else
  add(argument, &layout.data, data);
#endif
}

void Execution::add(int argument, LayoutView layout, const void* data) {
  dnnl_memory_t memory = nullptr;
  dnnl::error::wrap_c_api(dnnl_memory_create(&memory, layout, onednn_engine().get(), const_cast<void*>(data)),
                          "cannot create the memory object of a oneDNN argument");
  arguments_[count_++] = {argument, memory};
}

void Execution::run(const dnnl::primitive& primitive) {
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), onednn_stream().get(), count_, arguments_),
                          "a oneDNN primitive failed");
}

dnnl::memory::desc layout_of(const dnnl::memory::dims& dims, Format format) {
  using Tag = dnnl::memory::format_tag;
  constexpr Tag kDense[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
  constexpr Tag kBlocked8[] = {Tag::aBc8b, Tag::aBcd8b, Tag::aBcde8b};
  constexpr Tag kBlocked16[] = {Tag::aBc16b, Tag::aBcd16b, Tag::aBcde16b};
  Tag tag = format == Format::kDense ? kDense[dims.size() - 1]
                                     : (channel_block() == 16 ? kBlocked16 : kBlocked8)[dims.size() - 3];
  return {dims, dnnl::memory::data_type::f32, tag};
}

int64_t bytes_of(const dnnl::memory::desc& layout) {
  return align_up(static_cast<int64_t>(layout.get_size()));
}

void onednn_reorder(const dnnl::memory::desc& from_layout, const void* from, const dnnl::memory::desc& to_layout,
                    void* to) {
  SingleThreaded single;
  dnnl::memory source(from_layout, onednn_engine(), const_cast<void*>(from));
  dnnl::memory target(to_layout, onednn_engine(), to);
  // Provide the scratch memory of the reorder, which oneDNN would otherwise keep allocated.
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc description(onednn_engine(), from_layout, onednn_engine(), to_layout, attributes);
  const dnnl::memory::desc scratch_layout = description.scratchpad_desc();
  const Block scratch = allocate_pages(bytes_of(scratch_layout));
  dnnl::memory scratchpad(scratch_layout, onednn_engine(), scratch.get());
  dnnl::reorder(description)
      .execute(onednn_stream(), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}, {DNNL_ARG_SCRATCHPAD, scratchpad}});
}

namespace {

void append(dnnl::post_ops& ops, const Activation& a) {
  using dnnl::algorithm;
  auto eltwise = [&](algorithm function, float alpha = 0, float beta = 0) {
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(function, alpha, beta);
#else
    ops.append_eltwise(1.0f, function, alpha, beta);
#endif
  };
  switch (a.function) {
    case Activation::kRelu:
      return eltwise(algorithm::eltwise_relu);
    case Activation::kLeakyRelu:
      return eltwise(algorithm::eltwise_relu, a.alpha);
    case Activation::kClip:
      return eltwise(algorithm::eltwise_clip, std::min(a.alpha, a.beta), a.beta);  // ONNX allows min > max
    case Activation::kSigmoid:
      return eltwise(algorithm::eltwise_logistic);
    case Activation::kTanh:
      return eltwise(algorithm::eltwise_tanh);
    case Activation::kElu:
      return eltwise(algorithm::eltwise_elu, a.alpha);
    case Activation::kHardSigmoid:
      eltwise(algorithm::eltwise_linear, a.alpha, a.beta);
      return eltwise(algorithm::eltwise_clip, 0, 1);
    case Activation::kHardSwish:
      return eltwise(algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
    case Activation::kSwish:
      return eltwise(algorithm::eltwise_swish, a.alpha);
    case Activation::kGelu:
      return eltwise(algorithm::eltwise_gelu_erf);
    case Activation::kGeluTanh:
      return eltwise(algorithm::eltwise_gelu_tanh);
  }
}

dnnl::primitive_attr attributes_for(std::span<const PostOp> post_ops, const dnnl::memory::desc& shift = {}) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // because threads share a primitive
  dnnl::post_ops ops;
  if (shift != dnnl::memory::desc()) ops.append_binary(dnnl::algorithm::binary_add, shift);
  for (const PostOp& op : post_ops) {
    if (op.kind == PostOp::kAdd)
      ops.append_sum();
    else
      append(ops, op.activation);
  }
  attributes.set_post_ops(ops);
  return attributes;
}

}  // namespace

dnnl::convolution_forward::primitive_desc describe_convolution(const ConvolutionArguments& a) {
  const dnnl::primitive_attr attributes = attributes_for(a.post_ops, a.shift);
  constexpr auto kKind = dnnl::prop_kind::forward_inference;
  constexpr bool kMayBeEmpty = true;
  const auto algorithm = a.algorithm;
#if DNNL_VERSION_MAJOR >= 3
  if (a.has_bias) {
    return {onednn_engine(), kKind,       algorithm, a.source, a.weights,  a.bias,     a.result,
            a.strides,       a.dilations, a.begin,   a.end,    attributes, kMayBeEmpty};
  }
  return {onednn_engine(), kKind,       algorithm, a.source, a.weights,  a.result,
          a.strides,       a.dilations, a.begin,   a.end,    attributes, kMayBeEmpty};
#else
  if (a.has_bias) {
    return {{kKind, algorithm, a.source, a.weights, a.bias, a.result, a.strides, a.dilations, a.begin, a.end},
            attributes,
            onednn_engine(),
            kMayBeEmpty};
  }
  return {{kKind, algorithm, a.source, a.weights, a.result, a.strides, a.dilations, a.begin, a.end},
          attributes,
          onednn_engine(),
          kMayBeEmpty};
#endif
}

dnnl::matmul::primitive_desc describe_product(const ProductArguments& a) {
  const dnnl::primitive_attr attributes = attributes_for(a.post_ops);
  constexpr bool kMayBeEmpty = true;
#if DNNL_VERSION_MAJOR >= 3
  if (a.has_bias) return {onednn_engine(), a.source, a.weights, a.bias, a.result, attributes, kMayBeEmpty};
  return {onednn_engine(), a.source, a.weights, a.result, attributes, kMayBeEmpty};
#else
  if (a.has_bias) return {{a.source, a.weights, a.bias, a.result}, attributes, onednn_engine(), kMayBeEmpty};
  return {{a.source, a.weights, a.result}, attributes, onednn_engine(), kMayBeEmpty};
#endif
}

bool is_fast(const char* implementation) {
  const std::string_view name = implementation;
  return !name.starts_with("ref") && !name.starts_with("gemm:ref");
}

SingleThreaded::SingleThreaded() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
SingleThreaded::~SingleThreaded() {
  if (before_ != 1) omp_set_num_threads(before_);
}

void sgemm_here(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c,
                int64_t c_stride, const float* row_bias) {
  SingleThreaded single;
  if (k == 0) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        c[i * c_stride + j] = row_bias != nullptr ? row_bias[i] : beta == 0 ? 0 : beta * c[i * c_stride + j];
      }
    }
    return;
  }
  if (row_bias != nullptr) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_stride, n, row_bias[i]);
    beta = 1;
  }
  // oneDNN requires strides of at least the length of a stored row, even if there is only one row.
  const int64_t a_stride = std::max(a.stride, a.transposed ? m : k),
                b_stride = std::max(b.stride, b.transposed ? k : n);
  dnnl::error::wrap_c_api(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data,
                                     a_stride, b.data, b_stride, beta, c, std::max(c_stride, n)),
                          "a oneDNN matrix product failed");
}

void sgemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c, int64_t c_stride,
           const float* row_bias) {
  if (m == 0 || n == 0) return;
  if (k == 0) return sgemm_here(m, n, k, alpha, a, b, beta, c, c_stride, row_bias);
  // Cut the longer side, so that all tasks read the whole of the smaller operand and a part of the larger one.
  bool by_columns = n >= m;
  int64_t side = by_columns ? n : m;
  int64_t block = by_columns ? kColumnBlock : kRowBlock;
  int64_t blocks = (side + block - 1) / block;
  int64_t work_per_block = std::max<int64_t>(1, block * k * (by_columns ? m : n));
  int64_t parts = int64_t{2} * thread_count();
  int64_t per_thread = (blocks + parts - 1) / parts;
  if (thread_state().watch != nullptr) per_thread = std::clamp<int64_t>(kWatchedWork / work_per_block, 1, per_thread);
  int64_t grain = std::max(per_thread, (processor().multiply_adds(kTaskTime) + work_per_block - 1) / work_per_block);
  const int64_t other = by_columns ? m : n;
  const bool watched = thread_state().watch != nullptr;
  parallel(blocks, grain, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * block, count = std::min(end * block, side) - first;
    const int64_t piece = watched ? std::max(kRowBlock, kWatchedWork / (count * k)) : other;
    Pace pace;
    for (int64_t from = 0; from < other; from += piece) {
      const int64_t row = by_columns ? from : first, column = by_columns ? first : from;
      const int64_t rows = by_columns ? std::min(piece, m - from) : count;
      const int64_t columns = by_columns ? count : std::min(piece, n - from);
      sgemm_here(rows, columns, k, alpha, {a.data + offset(a, row, 0), a.stride, a.transposed},
                 {b.data + offset(b, 0, column), b.stride, b.transposed}, beta, c + row * c_stride + column, c_stride,
                 row_bias == nullptr ? nullptr : row_bias + row);
      pace.spend(rows * columns * k);
    }
  });
}

}  // namespace backplane::cpu
