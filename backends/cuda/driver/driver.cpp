// SPDX-License-Identifier: Apache-2.0
#include "driver/driver.h"

#include "driver/capture.h"
#include "driver/nvrtc.h"
#include "engine/kernel_source.h"

namespace backplane::cuda {
namespace {

SharedContext make_context(const FoundDevice& device, const bp_native_t* native) {
  if (native == nullptr) return std::make_shared<const Context>(device.id, nullptr);
  const bp_native_t given = sdk::read(native, "how.native");
  const auto raw = reinterpret_cast<CUcontext>(given.handle);
  if (given.kind != BP_NATIVE_CUDA_CONTEXT)
    throw sdk::Error(BP_UNSUPPORTED, device.caps.name + " cannot be opened on a native object of kind " +
                                         std::to_string(given.kind) + "; pass a CUcontext");
  if (raw == nullptr)
    throw sdk::Error(BP_UNSUPPORTED, device.caps.name + " cannot be opened on a CUcontext that is NULL");
  auto context = std::make_shared<const Context>(device.id, raw);
  const Current current(*context);
  CUdevice own = 0;
  check(cuda().cuCtxGetDevice(&own), "device of a context");
  if (own != device.id)
    throw sdk::Error(BP_UNSUPPORTED,
                     "the context does not belong to " + device.caps.name + "; pass a context of that GPU");
  return context;
}

std::shared_ptr<const Event> start_clock(const SharedContext& context) {
  const Current current(*context);
  return std::make_shared<const Event>(context, nullptr, nullptr, true);
}

class Module final : public gpu::KernelModule {
 public:
  Module(SharedContext context, std::string binary)
      : binary_(std::move(binary)), loaded_(std::make_shared<const LoadedModule>(std::move(context), binary_)) {}
  gpu::Kernel kernel(const std::string& entry) const override { return std::make_shared<Kernel>(loaded_, entry); }
  std::string binary() const override { return binary_; }

 private:
  std::string binary_;
  std::shared_ptr<const LoadedModule> loaded_;
};

}  // namespace

Driver::Driver(const FoundDevice& device, const bp_native_t* context)
    : device_(device),
      context_(make_context(device, context)),
      products_(device_, context_),
      convolutions_(device_, context_),
      words_(std::make_shared<Words>(context_)),
      clock_(start_clock(context_)) {}

// ---- memory --------------------------------------------------------------------------------------------------------

gpu::Buffer Driver::buffer(uint64_t bytes) const {
  return std::make_shared<const Memory>(context_, bytes);
}

gpu::Buffer Driver::part(const gpu::Buffer& whole, uint64_t offset, uint64_t) const {
  return std::make_shared<const Memory>(context_, whole, raw(*whole) + offset);
}

std::shared_ptr<const void> Driver::pin(void* address, uint64_t bytes) const {
  constexpr uint64_t kLeast = uint64_t{1} << 16;  // bytes; for smaller copies CUDA's driver uses its own pinned memory
  if (bytes < kLeast) return nullptr;
  const std::lock_guard lock(pinned_mutex_);
  std::erase_if(pinned_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const void>& known = pinned_[{address, bytes}];
  if (auto pinned = known.lock()) return pinned;
  const Current current(*context_);
  // Fails if the framework has already pinned the memory.
  if (cuda().cuMemHostRegister(address, bytes, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS) return nullptr;
  std::shared_ptr<const void> pinned(address, [context = context_](const void* pinned) {
    static_cast<void>(sdk::caught([&] {
      const Current current(*context);
      cuda().cuMemHostUnregister(const_cast<void*>(pinned));
    }));
  });
  known = pinned;
  return pinned;
}

std::shared_ptr<int32_t> Driver::host_word() const {
  volatile uint32_t* const word = words_->take();
  return {reinterpret_cast<int32_t*>(const_cast<uint32_t*>(word)),
          [words = words_, word](const int32_t*) { words->put_back(word); }};
}

// Throws unless the external memory lies within one allocation of CUDA that this device can use. CUDA's driver knows
// all allocations, so memory that has been freed is refused too.
void Driver::check_import(const bp_external_t& external) const {
  unsigned int type = 0, is_managed = 0;
  int device = -1;
  CUdeviceptr begin = 0;
  size_t size = 0;
  CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* results[] = {&type, &is_managed, &device, &begin, &size};
  const Current current(*context_);
  check(cuda().cuPointerGetAttributes(std::size(what), what, results, external.handle), "import of an address");
  char address[2 + 16 + 1];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(external.handle));
  if (type == 0) throw sdk::Error(BP_INVALID_ARGUMENT, std::string(address) + " is not an address of CUDA memory");
  if (type == CU_MEMORYTYPE_DEVICE && is_managed == 0 && device != device_.id)
    throw sdk::Error(BP_UNSUPPORTED, std::string(address) + " is memory of CUDA device " + std::to_string(device) +
                                         "; copy it to " + device_.caps.name + " first");
  const uint64_t skipped = external.handle - begin;
  if (size != 0 &&
      (skipped > size || external.offset > size - skipped || external.bytes > size - skipped - external.offset))
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     std::string(address) + " has " + std::to_string(size - std::min(skipped, uint64_t{size})) +
                         " bytes up to the end of its allocation, but " + std::to_string(external.bytes) +
                         " at offset " + std::to_string(external.offset) + " are to be imported");
}

gpu::Buffer Driver::import_memory(const bp_external_t& external) const {
  check_import(external);
  return std::make_shared<const Memory>(context_, gpu::Buffer(), static_cast<CUdeviceptr>(external.handle));
}

// ---- queues and events ---------------------------------------------------------------------------------------------

gpu::Queue Driver::queue() const {
  return std::make_shared<CommandQueue>(context_, words_, clock_);
}

gpu::Capture Driver::capture(const std::function<void(gpu::CommandQueue&)>& enqueue) const {
  CommandQueue queue(context_, words_, clock_);
  return std::make_shared<const Capture>(context_, queue, enqueue);
}

gpu::Queue Driver::import_queue(const bp_native_t& native) const {
  if (native.kind != BP_NATIVE_CUDA_STREAM)
    throw sdk::Error(BP_UNSUPPORTED, "a stream cannot wrap a native object of kind " + std::to_string(native.kind) +
                                         "; pass a cudaStream_t");
  const auto stream = reinterpret_cast<CUstream>(native.handle);
  const Current current(*context_);
  CUcontext own = nullptr;
  check(cuda().cuStreamGetCtx(stream, &own), "context of a stream");
  if (own != context_->get())
    throw sdk::Error(BP_UNSUPPORTED,
                     "the stream belongs to another context; pass one of the context that the device was opened in");
  return std::make_shared<CommandQueue>(context_, words_, clock_, stream);
}

gpu::Event Driver::import_event(const bp_native_t& native) const {
  if (native.kind != BP_NATIVE_CUDA_EVENT)
    throw sdk::Error(BP_UNSUPPORTED, "a semaphore cannot wrap a native object of kind " + std::to_string(native.kind) +
                                         "; pass a cudaEvent_t");
  if (native.handle == 0) throw sdk::Error(BP_UNSUPPORTED, "a semaphore cannot wrap a cudaEvent_t that is NULL");
  return std::make_shared<const Event>(context_, reinterpret_cast<CUevent>(native.handle));
}

// ---- kernels -------------------------------------------------------------------------------------------------------

std::string_view Driver::prelude() const {
  return gpu::kernel_text("cuda");
}

// Without contraction, a product and the sum it is added to are rounded separately, as on other devices. Kernels that
// need a single rounding call fma.
std::string Driver::options() const {
  return "--std=c++17 --device-as-default-execution-space --fmad=false";
}

gpu::Module Driver::compile(const std::string& text, const std::string& options) const {
  return std::make_shared<const Module>(context_, cuda::compile(text, options, device_.caps.arch));
}

gpu::Module Driver::load(const std::string& binary, const std::string&) const {
  gpu::Module module;
  // Any failure leaves `module` null, for example if the binary is damaged or for another GPU. The caller then compiles
  // the kernel.
  static_cast<void>(sdk::caught([&] { module = std::make_shared<const Module>(context_, binary); }));
  return module;
}

}  // namespace backplane::cuda
