// SPDX-License-Identifier: Apache-2.0
#include "kernels/movement/packed.h"

#include "kernels/common/small_types.h"
#include "kernels/common/support.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

bool is_packed(const Tensor& tensor) {
  return tensor.dtype < 64 && (kPackedTypes >> tensor.dtype & 1) != 0;
}

using Storage = std::vector<std::vector<uint8_t>>;

// Returns the tensors, but packed ones as UINT8 tensors whose memory is in `storage`. `fill`: unpack their elements
// too.
std::vector<Tensor> as_bytes(std::span<const Tensor> tensors, Storage& storage, bool fill) {
  std::vector<Tensor> bytes(tensors.begin(), tensors.end());
  for (Tensor& tensor : bytes) {
    if (!is_packed(tensor)) continue;
    const int64_t n = tensor.shape.elements();
    require_memory(n, 1);
    std::vector<uint8_t>& unpacked = storage.emplace_back(static_cast<size_t>(n));
    if (fill) unpack(tensor.dtype, tensor.data, unpacked.data(), n);
    tensor.dtype = BP_DTYPE_UINT8;
    tensor.data = unpacked.data();
  }
  return bytes;
}

class UnpackedStep final : public Step {
 public:
  explicit UnpackedStep(std::unique_ptr<Step> inner) : inner_(std::move(inner)) {}

  std::optional<std::string> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                 void* scratch) const override {
    Storage in_storage, out_storage;
    const std::vector<Tensor> in = as_bytes(inputs, in_storage, true);
    const std::vector<Tensor> out = as_bytes(outputs, out_storage, false);
    if (auto failed = inner_->run(in, out, scratch)) return failed;
    for (size_t i = 0; i < out.size(); ++i)
      if (is_packed(outputs[i]))
        pack(outputs[i].dtype, out[i].as<uint8_t>(), outputs[i].data, outputs[i].shape.elements());
    return std::nullopt;
  }
  int64_t scratch_bytes() const override { return inner_->scratch_bytes(); }
  int alias() const override { return inner_->alias(); }

 private:
  std::unique_ptr<Step> inner_;
};

class UnpackedKernel final : public Kernel {
 public:
  explicit UnpackedKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}

  Plan plan(const PlanContext& context, std::span<const Tensor> inputs) const override {
    std::vector<Tensor> bytes(inputs.begin(), inputs.end());
    for (Tensor& tensor : bytes) {
      if (!is_packed(tensor)) continue;
      tensor.dtype = BP_DTYPE_UINT8;
      tensor.data = nullptr;
    }
    Plan plan = inner_->plan(context, bytes);
    if (plan.step) plan.step = std::make_unique<UnpackedStep>(std::move(plan.step));
    return plan;
  }

 private:
  std::unique_ptr<Kernel> inner_;
};

}  // namespace

std::unique_ptr<Kernel> move_unpacked(std::unique_ptr<Kernel> inner) {
  return std::make_unique<UnpackedKernel>(std::move(inner));
}

bool has_packed(const Node& node) {
  return node.input_count() > 0 && is_packed(Tensor{.dtype = node.input_type(0).dtype, .shape = {}, .data = nullptr});
}

}  // namespace backplane::cpu
