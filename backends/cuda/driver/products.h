// SPDX-License-Identifier: Apache-2.0
// Matrix products through cuBLASLt.
#pragma once

#include "backplane/sdk/once.hpp"
#include "driver/cublaslt.h"
#include "driver/devices.h"
#include "driver/queue.h"
#include "engine/product_library.h"

namespace backplane::cuda {

// A handle of cuBLASLt for a CUDA context.
class LtHandle {
 public:
  explicit LtHandle(SharedContext context);
  LtHandle(const LtHandle&) = delete;
  LtHandle& operator=(const LtHandle&) = delete;
  ~LtHandle();
  lt::Handle get() const { return handle_; }
  const Context& context() const { return *context_; }

 private:
  SharedContext context_;
  lt::Handle handle_ = nullptr;
};

class Products final : public gpu::ProductLibrary {
 public:
  Products(const FoundDevice& device, SharedContext context) : major_(device.major), context_(std::move(context)) {}

  std::string identity() const override;
  uint32_t compute_types(bp_dtype_t dtype) const override;
  std::vector<gpu::LibraryAlgorithm> algorithms(const gpu::ProductProblem& problem, size_t most,
                                                std::string& why_none) const override;
  gpu::Kernel kernel(const gpu::ProductProblem& problem, const gpu::LibraryAlgorithm& algorithm) const override;

 private:
  // The handle, or NULL with the reason in `why_none_`. Created by the first call.
  std::shared_ptr<const LtHandle> handle() const;

  const int major_;  // of the device's compute capability
  const SharedContext context_;
  mutable sdk::Once opened_;
  mutable std::shared_ptr<const LtHandle> handle_;
  mutable std::string why_none_;
};

}  // namespace backplane::cuda
