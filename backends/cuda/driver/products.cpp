// SPDX-License-Identifier: Apache-2.0
#include "driver/products.h"

#include <algorithm>
#include <optional>

#include "engine/shape.h"

namespace backplane::cuda {
namespace {

using gpu::ProductProblem;

// In bytes. Algorithms are chosen for matrices whose addresses are multiples of kAlignment; with a matrix at another
// address, a product gets another algorithm.
constexpr uint32_t kAlignment = 16;
constexpr int kFirstWithTf32 = 8;  // the first major compute capability with TF32
// The largest workspace in bytes, as NVIDIA advises for Hopper and newer, and for older devices.
constexpr uint64_t kWorkspace = uint64_t{32} << 20, kOlderWorkspace = uint64_t{4} << 20;

std::optional<lt::DataType> data_type(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      return lt::kF32;
    case BP_DTYPE_DOUBLE:
      return lt::kF64;
    case BP_DTYPE_FLOAT16:
      return lt::kF16;
    case BP_DTYPE_BFLOAT16:
      return lt::kBf16;
    default:
      return std::nullopt;
  }
}

lt::ComputeType compute_type(const ProductProblem& problem) {
  if (problem.dtype == BP_DTYPE_DOUBLE) return lt::kCompute64F;
  const bool tf32 = problem.dtype == BP_DTYPE_FLOAT && (problem.compute_types & BP_COMPUTE_TF32) != 0;
  return tf32 ? lt::kCompute32FFastTf32 : lt::kCompute32F;
}

// An object of the library, destroyed with this one.
template <class Raw>
class Owned {
 public:
  using Destroy = lt::Status (*)(Raw);
  template <class Create>
  Owned(std::string_view what, Destroy destroy, Create&& create) : destroy_(destroy) {
    lt::check(create(&raw_), what);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { destroy_(raw_); }
  Raw get() const { return raw_; }

 private:
  Raw raw_ = nullptr;
  Destroy destroy_;
};

class Layout : public Owned<lt::Layout> {
 public:
  // For a column-major matrix; `stride` is the number of elements from one matrix of the batch to the next.
  Layout(lt::DataType type, int64_t rows, int64_t columns, int64_t batch, int64_t stride)
      : Owned("layout of a matrix", lt::functions().MatrixLayoutDestroy, [&](lt::Layout* out) {
          return lt::functions().MatrixLayoutCreate(out, type, static_cast<uint64_t>(rows),
                                                    static_cast<uint64_t>(columns), rows);
        }) {
    if (batch == 1) return;
    const auto count = static_cast<int32_t>(batch);
    set(lt::kBatchCount, count);
    set(lt::kBatchStride, stride);
  }

 private:
  template <class T>
  void set(lt::LayoutAttribute attribute, const T& value) {
    lt::check(lt::functions().MatrixLayoutSetAttribute(get(), attribute, &value, sizeof value), "batch of matrices");
  }
};

class Operation : public Owned<lt::Operation> {
 public:
  explicit Operation(const ProductProblem& problem)
      : Owned("operation", lt::functions().MatmulDescDestroy, [&](lt::Operation* out) {
          const bool is_double = problem.dtype == BP_DTYPE_DOUBLE;
          return lt::functions().MatmulDescCreate(out, compute_type(problem), is_double ? lt::kF64 : lt::kF32);
        }) {
    set(lt::kTransA, problem.b_transposed ? lt::kTransposed : lt::kPlain);
    set(lt::kTransB, problem.a_transposed ? lt::kTransposed : lt::kPlain);
    using Activation = ProductProblem::Activation;
    uint32_t epilogue = problem.activation == Activation::kRelu       ? lt::kRelu
                        : problem.activation == Activation::kTanhGelu ? lt::kGelu
                                                                      : 0u;
    if (problem.has_bias) epilogue |= lt::kBias;
    if (epilogue != 0) set(lt::kEpilogue, epilogue);
  }
  void set_bias(CUdeviceptr bias) { set(lt::kBiasPointer, bias); }

 private:
  template <class T>
  void set(lt::OperationAttribute attribute, const T& value) {
    lt::check(lt::functions().MatmulDescSetAttribute(get(), attribute, &value, sizeof value), "operation");
  }
};

class Preference : public Owned<lt::Preference> {
 public:
  Preference(const ProductProblem& problem, uint64_t workspace, const std::array<uint32_t, 4>& alignments)
      : Owned("preference", lt::functions().MatmulPreferenceDestroy,
              [](lt::Preference* out) { return lt::functions().MatmulPreferenceCreate(out); }) {
    set(lt::kMaxWorkspace, workspace);
    for (uint32_t i = 0; i < alignments.size(); ++i)
      set(static_cast<lt::PreferenceAttribute>(lt::kMinAlignmentA + i), alignments[i]);
    // Partial sums of products of 16-bit floats are combined in fp32, not rounded to 16 bits.
    if (gpu::bytes_of(problem.dtype) < 4) set(lt::kReductionMask, uint32_t{lt::kReduceInComputeType});
  }

 private:
  template <class T>
  void set(lt::PreferenceAttribute attribute, const T& value) {
    lt::check(lt::functions().MatmulPreferenceSetAttribute(get(), attribute, &value, sizeof value), "preference");
  }
};

// A problem as the library sees it. A row-major matrix is the transpose of a column-major one, and the transpose of
// a b is the product of the transposes in reverse order: the library's A is b, its B is a.
struct Description {
  Operation operation;
  Layout a, b, y;

  Description(const ProductProblem& p, lt::DataType type)
      : operation(p),
        a(type, p.a_transposed ? p.m : p.k, p.a_transposed ? p.k : p.m, p.batch, p.a_repeats ? 0 : p.m * p.k),
        b(type, p.b_transposed ? p.k : p.n, p.b_transposed ? p.n : p.k, p.batch, p.b_repeats ? 0 : p.k * p.n),
        y(type, p.n, p.m, p.batch, p.m * p.n) {}

  // `alignments`: of the addresses of the library's A, B, C and D, in bytes.
  std::vector<lt::Heuristic> algorithms(const LtHandle& handle, const ProductProblem& problem, size_t most,
                                        uint64_t workspace, const std::array<uint32_t, 4>& alignments) const {
    const Preference preference(problem, workspace, alignments);
    std::vector<lt::Heuristic> found(most);
    int count = 0;
    lt::check(lt::functions().MatmulAlgoGetHeuristic(handle.get(), operation.get(), b.get(), a.get(), y.get(), y.get(),
                                                     preference.get(), static_cast<int>(most), found.data(), &count),
              "algorithm for product " + problem.text());
    found.resize(std::min(most, static_cast<size_t>(std::max(count, 0))));
    std::erase_if(found, [&](const lt::Heuristic& each) {
      return each.status != lt::kSuccess || each.workspace_bytes > workspace;
    });
    return found;
  }
};

class Product final : public Command {
 public:
  Product(std::shared_ptr<const LtHandle> handle, const ProductProblem& problem, lt::DataType type,
          const gpu::LibraryAlgorithm& algorithm)
      : handle_(std::move(handle)),
        problem_(problem),
        description_(problem, type),
        algorithm_(*static_cast<const lt::Algorithm*>(algorithm.own.get())),
        workspace_bytes_(algorithm.workspace_bytes) {}

  void set(uint32_t, const void*, uint32_t) override {}  // an argument that the problem does not have
  void set(uint32_t index, const gpu::DeviceMemory& memory) override {
    addresses_.at(index) = raw(memory);
    if (index == gpu::kLibraryBias && problem_.has_bias) description_.operation.set_bias(addresses_[index]);
  }

  void launch(CUstream stream, const gpu::Ranges&) override {
    const CUdeviceptr a = addresses_[gpu::kLibraryA], b = addresses_[gpu::kLibraryB], y = addresses_[gpu::kLibraryY];
    const CUdeviceptr c = problem_.beta != 0 ? addresses_[gpu::kLibraryC] : y;
    const double wide_alpha = problem_.alpha, wide_beta = problem_.beta;
    const bool is_double = problem_.dtype == BP_DTYPE_DOUBLE;
    const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
    lt::check(lt::functions().Matmul(
                  handle_->get(), description_.operation.get(),
                  is_double ? &wide_alpha : static_cast<const void*>(&problem_.alpha), pointer(b), description_.b.get(),
                  pointer(a), description_.a.get(), is_double ? &wide_beta : static_cast<const void*>(&problem_.beta),
                  pointer(c), description_.y.get(), pointer(y), description_.y.get(), &fitting_algorithm(b, a, c, y),
                  pointer(addresses_[gpu::kLibraryWorkspace]), workspace_bytes_, stream),
              "product " + problem_.text());
  }

 private:
  // The algorithm of this product, or another one if a matrix of the framework is aligned to fewer than kAlignment
  // bytes. The parameters are the addresses of the library's A, B, C and D.
  const lt::Algorithm& fitting_algorithm(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr d) {
    std::array<uint32_t, 4> alignments{};
    std::ranges::transform(std::array{a, b, c, d}, alignments.begin(), [](CUdeviceptr address) {
      uint32_t alignment = kAlignment;
      while (address % alignment != 0) alignment /= 2;
      return alignment;
    });
    if (std::ranges::min(alignments) == kAlignment) return algorithm_;
    if (other_ && other_alignments_ == alignments) return *other_;
    const auto found = description_.algorithms(*handle_, problem_, 1, workspace_bytes_, alignments);
    if (found.empty())
      throw sdk::Error(BP_UNSUPPORTED, "product " + problem_.text() + ": cuBLASLt needs memory that is aligned to " +
                                           std::to_string(kAlignment) + " bytes");
    other_ = found.front().algorithm;
    other_alignments_ = alignments;
    return *other_;
  }

  std::shared_ptr<const LtHandle> handle_;
  const ProductProblem problem_;
  Description description_;
  const lt::Algorithm algorithm_;
  const uint64_t workspace_bytes_;
  std::array<CUdeviceptr, gpu::kLibraryWorkspace + 1> addresses_{};
  std::optional<lt::Algorithm> other_;
  std::array<uint32_t, 4> other_alignments_{};
};

}  // namespace

LtHandle::LtHandle(SharedContext context) : context_(std::move(context)) {
  const lt::Functions& library = lt::functions();
  const Current current(*context_);
  lt::check(library.Create(&handle_), "starting cuBLASLt");
}

LtHandle::~LtHandle() {
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    lt::functions().Destroy(handle_);
  }));
}

std::shared_ptr<const LtHandle> Products::handle() const {
  opened_([this] {
    const auto failure = sdk::caught([this] { handle_ = std::make_shared<const LtHandle>(context_); });
    if (failure) why_none_ = failure->text;
  });
  return handle_;
}

std::string Products::identity() const {
  if (handle() == nullptr) return {};
  return "cuBLASLt " + std::to_string(lt::functions().GetVersion());
}

uint32_t Products::compute_types(bp_dtype_t dtype) const {
  return dtype == BP_DTYPE_FLOAT && major_ >= kFirstWithTf32 && handle() != nullptr ? BP_COMPUTE_TF32 : 0;
}

std::vector<gpu::LibraryAlgorithm> Products::algorithms(const gpu::ProductProblem& problem, size_t most,
                                                        std::string& why_none) const {
  std::vector<gpu::LibraryAlgorithm> all;
  const auto failure = sdk::caught([&] {
    const std::optional<lt::DataType> type = data_type(problem.dtype);
    if (!type || problem.batch > INT32_MAX)
      throw sdk::Error(BP_UNSUPPORTED, "cuBLASLt does not compute " + problem.text());
    const std::shared_ptr<const LtHandle> handle = this->handle();
    if (handle == nullptr) throw sdk::Error(BP_UNSUPPORTED, why_none_);
    const Current current(*context_);
    const Description description(problem, *type);
    for (const lt::Heuristic& each :
         description.algorithms(*handle, problem, most, major_ >= 9 ? kWorkspace : kOlderWorkspace,
                                {kAlignment, kAlignment, kAlignment, kAlignment}))
      all.push_back({std::make_shared<const lt::Algorithm>(each.algorithm), each.workspace_bytes});
    if (all.empty()) throw sdk::Error(BP_UNSUPPORTED, "cuBLASLt has no suitable algorithm for " + problem.text());
  });
  if (failure) why_none = failure->text;
  return all;
}

gpu::Kernel Products::kernel(const gpu::ProductProblem& problem, const gpu::LibraryAlgorithm& algorithm) const {
  const std::shared_ptr<const LtHandle> handle = this->handle();
  if (handle == nullptr) throw sdk::Error(BP_UNSUPPORTED, why_none_);
  return std::make_shared<Product>(handle, problem, data_type(problem.dtype).value(), algorithm);
}

}  // namespace backplane::cuda
