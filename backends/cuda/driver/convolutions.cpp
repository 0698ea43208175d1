// SPDX-License-Identifier: Apache-2.0
#include "driver/convolutions.h"

#include <optional>

namespace backplane::cuda {
namespace {

using gpu::ConvolutionProblem;

// In bytes. Plans are made for tensors whose addresses are multiples of kAlignment; with a tensor at another address, a
// convolution gets another plan.
constexpr uint64_t kAlignment = 16;
constexpr int kFirstWithTf32 = 8;                     // the first major compute capability with TF32
constexpr uint64_t kWorkspace = uint64_t{256} << 20;  // the largest workspace, in bytes

// What a gpu::LibraryAlgorithm of cuDNN points to. Keeps the handle that the plan was made with.
struct Algorithm {
  std::shared_ptr<const DnnHandle> handle;
  ConvolutionPlan plan;
};

class Convolution final : public Command {
 public:
  Convolution(SharedContext context, const ConvolutionProblem& problem, std::shared_ptr<const Algorithm> algorithm)
      : context_(std::move(context)), problem_(problem), algorithm_(std::move(algorithm)) {}

  void set(uint32_t, const void*, uint32_t) override {}  // an argument that the problem does not have
  void set(uint32_t index, const gpu::DeviceMemory& memory) override {
    CUdeviceptr& address = addresses_.at(index);
    if (address == raw(memory)) return;
    address = raw(memory);
    pack_.reset();
  }

  void launch(CUstream stream, const gpu::Ranges&) override {
    if (!pack_) {
      plan_ = &fitting_plan();
      pack_.emplace(pack());
    }
    algorithm_->handle->execute(stream, plan_->plan, *pack_, "convolution " + problem_.text());
  }

 private:
  // The ids of the tensors that the problem has.
  std::vector<int64_t> ids() const {
    std::vector<int64_t> all{gpu::kLibraryA, gpu::kLibraryB, gpu::kLibraryY};
    if (problem_.has_c) all.push_back(gpu::kLibraryC);
    if (problem_.has_bias) all.push_back(gpu::kLibraryBias);
    return all;
  }

  dnn::Descriptor pack() const {
    const auto pointer = [this](int64_t id) { return reinterpret_cast<void*>(addresses_[static_cast<size_t>(id)]); };
    const std::vector<int64_t> ids = this->ids();
    std::vector<void*> pointers;
    for (const int64_t id : ids) pointers.push_back(pointer(id));
    dnn::Descriptor pack(dnn::kVariantPack, "arguments of a convolution");
    pack.set(dnn::kPackIds, dnn::kTypeInt64, ids);
    pack.set(dnn::kPackPointers, dnn::kTypePointer, pointers);
    pack.set(dnn::kPackWorkspace, dnn::kTypePointer, pointer(gpu::kLibraryWorkspace));
    pack.finalize();
    return pack;
  }

  // The algorithm's plan, or another one if a tensor of the framework is aligned to fewer than kAlignment bytes.
  const ConvolutionPlan& fitting_plan() {
    uint64_t alignment = kAlignment;
    for (const int64_t id : ids())
      while (addresses_[static_cast<size_t>(id)] % alignment != 0) alignment /= 2;
    if (alignment == kAlignment) return algorithm_->plan;
    if (other_ && other_alignment_ == alignment) return *other_;
    try {
      std::vector<ConvolutionPlan> found = convolution_plans(
          algorithm_->handle->target(), problem_, 1, algorithm_->plan.workspace_bytes, static_cast<int64_t>(alignment));
      other_.reset();
      other_.emplace(std::move(found.front()));
    } catch (sdk::Error& error) {
      error.text += "; cuDNN needs memory that is aligned to " + std::to_string(kAlignment) + " bytes";
      throw;
    }
    other_alignment_ = alignment;
    return *other_;
  }

  const SharedContext context_;
  const ConvolutionProblem problem_;
  const std::shared_ptr<const Algorithm> algorithm_;
  std::array<CUdeviceptr, gpu::kLibraryWorkspace + 1> addresses_{};
  const ConvolutionPlan* plan_ = nullptr;
  std::optional<dnn::Descriptor> pack_;  // of the current addresses_
  std::optional<ConvolutionPlan> other_;
  uint64_t other_alignment_ = 0;
};

}  // namespace

DnnHandle::DnnHandle(SharedContext context) : context_(std::move(context)) {
  const dnn::Functions& library = dnn::functions();
  const Current current(*context_);
  dnn::check(library.Create(&handle_), "starting cuDNN");
}

DnnHandle::~DnnHandle() {
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    dnn::functions().Destroy(handle_);
  }));
}

void DnnHandle::execute(CUstream stream, const dnn::Descriptor& plan, const dnn::Descriptor& pack,
                        std::string_view what) const {
  const std::lock_guard lock(mutex_);
  dnn::check(dnn::functions().SetStream(handle_, stream), what);
  dnn::check(dnn::functions().BackendExecute(handle_, plan.get(), pack.get()), what);
}

std::shared_ptr<const DnnHandle> Convolutions::handle() const {
  opened_([this] {
    const auto failure = sdk::caught([this] { handle_ = std::make_shared<const DnnHandle>(context_); });
    if (failure) why_none_ = failure->text;
  });
  return handle_;
}

std::string Convolutions::identity() const {
  if (handle() == nullptr) return {};
  return "cuDNN " + std::to_string(dnn::functions().GetVersion());
}

uint32_t Convolutions::compute_types(bp_dtype_t dtype) const {
  return dtype == BP_DTYPE_FLOAT && major_ >= kFirstWithTf32 && handle() != nullptr ? BP_COMPUTE_TF32 : 0;
}

std::vector<gpu::LibraryAlgorithm> Convolutions::algorithms(const ConvolutionProblem& problem, size_t most,
                                                            std::string& why_none) const {
  std::vector<gpu::LibraryAlgorithm> all;
  const auto failure = sdk::caught([&] {
    if (!has_convolutions_of(problem.dtype))
      throw sdk::Error(BP_UNSUPPORTED, "cuDNN does not compute " + problem.text());
    const std::shared_ptr<const DnnHandle> handle = this->handle();
    if (handle == nullptr) throw sdk::Error(BP_UNSUPPORTED, why_none_);
    const Current current(*context_);
    for (ConvolutionPlan& plan : convolution_plans(handle->target(), problem, most, kWorkspace, kAlignment)) {
      const uint64_t workspace_bytes = plan.workspace_bytes;
      all.push_back({std::make_shared<const Algorithm>(Algorithm{handle, std::move(plan)}), workspace_bytes});
    }
  });
  if (failure) {
    why_none = failure->text;
    all.clear();
  }
  return all;
}

gpu::Kernel Convolutions::kernel(const ConvolutionProblem& problem, const gpu::LibraryAlgorithm& algorithm) const {
  return std::make_shared<Convolution>(context_, problem, std::static_pointer_cast<const Algorithm>(algorithm.own));
}

}  // namespace backplane::cuda
