// SPDX-License-Identifier: Apache-2.0
#include "driver/driver.h"

#include <algorithm>

#include "driver/queue.h"
#include "engine/kernel_source.h"

namespace backplane::opencl {
namespace {

template <class T, class Object>
T queried(cl_int (*ask)(Object, cl_uint, size_t, void*, size_t*), Object object, cl_uint what, std::string_view name) {
  T value{};
  check(ask(object, what, sizeof value, &value, nullptr), name);
  return value;
}

ClContext make_context(const FoundDevice& device, const bp_native_t* native) {
  const std::string& name = device.caps.name;
  if (native != nullptr) {
    const bp_native_t given = sdk::read(native, "how.native");
    const auto raw = reinterpret_cast<cl_context>(given.handle);
    if (given.kind != BP_NATIVE_CL_CONTEXT || raw == nullptr)
      throw sdk::Error(BP_UNSUPPORTED, name + " cannot be opened on a native object of kind " +
                                           std::to_string(given.kind) + "; pass a cl_context that is not NULL");
    size_t bytes = 0;
    check(clGetContextInfo(raw, CL_CONTEXT_DEVICES, 0, nullptr, &bytes), "devices of a context");
    std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
    check(clGetContextInfo(raw, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr), "devices of a context");
    if (std::find(devices.begin(), devices.end(), device.id) == devices.end())
      throw sdk::Error(BP_UNSUPPORTED, "the context does not contain " + name + "; pass one that was created for it");
    check(clRetainContext(raw), "import of a context");
    return ClContext(raw);
  }
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(device.platform), 0};
  cl_int status = CL_SUCCESS;
  ClContext context(clCreateContext(properties, 1, &device.id, nullptr, nullptr, &status));
  check(status, "context of " + name);
  return context;
}

std::string build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size != 0) clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::min(log.size(), log.find('\0')));
  return log;
}

class Module final : public gpu::KernelModule {
 public:
  explicit Module(ClProgram program) : program_(std::move(program)) {}

  gpu::Kernel kernel(const std::string& entry) const override {
    cl_int status = CL_SUCCESS;
    ClKernel kernel(clCreateKernel(program_.get(), entry.c_str(), &status));
    check(status, "kernel '" + entry + "'");
    return std::make_shared<Kernel>(std::move(kernel), entry);
  }
  std::string binary() const override {
    size_t size = 0;
    check(clGetProgramInfo(program_.get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr),
          "size of a kernel's binary");
    std::string binary(size, '\0');
    char* data = binary.data();
    check(clGetProgramInfo(program_.get(), CL_PROGRAM_BINARIES, sizeof data, &data, nullptr), "binary of a kernel");
    return binary;
  }

 private:
  ClProgram program_;
};

gpu::Buffer held(cl_mem memory) {
  return std::make_shared<const Memory>(ClMemory(memory));
}

}  // namespace

Driver::Driver(const FoundDevice& device, const bp_native_t* context)
    : device_(device), context_(make_context(device, context)) {}

void Driver::check_available() const {
  if (device_number<cl_bool>(device_.id, CL_DEVICE_AVAILABLE) == CL_TRUE) return;
  throw sdk::Error(error_of(CL_DEVICE_NOT_AVAILABLE, device_.caps.name));
}

// ---- memory --------------------------------------------------------------------------------------------------------

gpu::Buffer Driver::buffer(uint64_t bytes) const {
  if (bytes > device_.caps.max_buffer_bytes) {
    throw sdk::Error(BP_RESOURCE_EXHAUSTED, "a buffer of " + std::to_string(bytes) + " bytes exceeds the " +
                                                std::to_string(device_.caps.max_buffer_bytes) + " bytes that " +
                                                device_.caps.name + " allows");
  }
  cl_int status = CL_SUCCESS;
  const cl_mem memory =
      clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, std::max<uint64_t>(bytes, 1), nullptr, &status);
  check(status, "buffer of " + std::to_string(bytes) + " bytes");
  return held(memory);
}

gpu::Buffer Driver::part(const gpu::Buffer& whole, uint64_t offset, uint64_t bytes) const {
  cl_buffer_region region{offset, std::max<uint64_t>(bytes, 1)};
  cl_mem_flags flags = 0;  // those of `whole`
  // A framework may import a sub-buffer, which cannot have sub-buffers: the part then belongs to the complete buffer.
  const cl_mem own = raw(*whole);
  cl_mem complete = queried<cl_mem>(clGetMemObjectInfo, own, CL_MEM_ASSOCIATED_MEMOBJECT, "parent of a cl_mem");
  if (complete != nullptr) {
    region.origin += queried<size_t>(clGetMemObjectInfo, own, CL_MEM_OFFSET, "offset of a cl_mem");
    flags = queried<cl_mem_flags>(clGetMemObjectInfo, own, CL_MEM_FLAGS, "flags of a cl_mem") &
            (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
  } else {
    complete = own;
  }
  cl_int status = CL_SUCCESS;
  const cl_mem memory = clCreateSubBuffer(complete, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
  check(status, "sub-buffer of " + std::to_string(bytes) + " bytes at " + std::to_string(offset));
  return held(memory);
}

gpu::Buffer Driver::import_host(void* address, uint64_t bytes) const {
  cl_int status = CL_SUCCESS;
  const cl_mem memory =
      clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, address, &status);
  check(status, "buffer over " + std::to_string(bytes) + " bytes of host memory");
  return held(memory);
}

gpu::Buffer Driver::import_memory(const bp_external_t& external) const {
  const auto memory = reinterpret_cast<cl_mem>(external.handle);
  const cl_int status = memory == nullptr ? CL_INVALID_MEM_OBJECT : clRetainMemObject(memory);
  if (status == CL_INVALID_MEM_OBJECT)
    throw sdk::Error(BP_INVALID_ARGUMENT, "external.handle is not a cl_mem: nothing can be imported");
  check(status, "import of a cl_mem");
  ClMemory retained(memory);
  if (queried<cl_mem_object_type>(clGetMemObjectInfo, memory, CL_MEM_TYPE, "type of a cl_mem") != CL_MEM_OBJECT_BUFFER)
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     "the cl_mem is not a buffer (it is an image or a pipe): only buffers can be imported");
  if (queried<cl_context>(clGetMemObjectInfo, memory, CL_MEM_CONTEXT, "context of a cl_mem") != context_.get())
    throw sdk::Error(BP_UNSUPPORTED,
                     "the cl_mem is of another context; create it in the context of an exported cl_mem, or open the "
                     "device in its context");
  const auto size = queried<size_t>(clGetMemObjectInfo, memory, CL_MEM_SIZE, "size of a cl_mem");
  if (external.offset > size || external.bytes > size - external.offset)
    throw sdk::Error(BP_INVALID_ARGUMENT, "the cl_mem has " + std::to_string(size) + " bytes, but " +
                                              std::to_string(external.bytes) + " at offset " +
                                              std::to_string(external.offset) + " are to be imported");
  return std::make_shared<const Memory>(
      std::move(retained), queried<cl_mem_flags>(clGetMemObjectInfo, memory, CL_MEM_FLAGS, "flags of a cl_mem"));
}

uint64_t Driver::export_memory(const gpu::DeviceMemory& memory) const {
  return reinterpret_cast<uint64_t>(raw(memory));
}

// ---- queues and events ---------------------------------------------------------------------------------------------

gpu::Queue Driver::queue() const {
  cl_int status = CL_SUCCESS;
  ClQueue queue(clCreateCommandQueue(context_.get(), device_.id, CL_QUEUE_PROFILING_ENABLE, &status));
  check(status, "command queue");
  return std::make_shared<CommandQueue>(std::move(queue));
}

gpu::Queue Driver::import_queue(const bp_native_t& native) const {
  if (native.kind != BP_NATIVE_CL_QUEUE || native.handle == 0)
    throw sdk::Error(BP_UNSUPPORTED, "a stream cannot wrap a native object of kind " + std::to_string(native.kind) +
                                         "; pass a cl_command_queue that is not NULL");
  const auto raw = reinterpret_cast<cl_command_queue>(native.handle);
  check(clRetainCommandQueue(raw), "import of a command queue");
  ClQueue queue(raw);
  if (queried<cl_context>(clGetCommandQueueInfo, raw, CL_QUEUE_CONTEXT, "context of a command queue") != context_.get())
    throw sdk::Error(BP_UNSUPPORTED,
                     "the command queue is of another context; create it in the context of an exported cl_mem");
  const auto properties = queried<cl_command_queue_properties>(clGetCommandQueueInfo, raw, CL_QUEUE_PROPERTIES,
                                                               "properties of a command queue");
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
    throw sdk::Error(BP_UNSUPPORTED, "the command queue is out of order; pass an in-order queue");
  return std::make_shared<CommandQueue>(std::move(queue));
}

gpu::Event Driver::import_event(const bp_native_t& native) const {
  if (native.kind != BP_NATIVE_CL_EVENT || native.handle == 0)
    throw sdk::Error(BP_UNSUPPORTED, "a semaphore cannot wrap a native object of kind " + std::to_string(native.kind) +
                                         "; pass a cl_event that is not NULL");
  const auto raw = reinterpret_cast<cl_event>(native.handle);
  check(clRetainEvent(raw), "import of an event");
  return std::make_shared<const Event>(ClEvent(raw));
}

// ---- kernels -------------------------------------------------------------------------------------------------------

std::string_view Driver::prelude() const {
  return gpu::kernel_text("opencl");
}

std::string Driver::options() const {
  const auto single = device_number<cl_device_fp_config>(device_.id, CL_DEVICE_SINGLE_FP_CONFIG);
  const bool exact_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  return std::string("-cl-std=CL1.2") + (exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

gpu::Module Driver::compile(const std::string& text, const std::string& options) const {
  const char* data = text.data();
  const size_t size = text.size();
  cl_int status = CL_SUCCESS;
  ClProgram program(clCreateProgramWithSource(context_.get(), 1, &data, &size, &status));
  check(status, "creating a program");
  status = clBuildProgram(program.get(), 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (status == CL_BUILD_PROGRAM_FAILURE) {
    throw sdk::Error(BP_INTERNAL,
                     "a kernel does not compile with '" + options + "' on " + device_.caps.name + ": " +
                         build_log(program.get(), device_.id),
                     BP_NO_NODE, status);
  }
  check(status, "building a kernel with '" + options + "'");
  return std::make_shared<const Module>(std::move(program));
}

gpu::Module Driver::load(const std::string& binary, const std::string& options) const {
  const size_t size = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int loaded = CL_SUCCESS, status = CL_SUCCESS;
  ClProgram program(clCreateProgramWithBinary(context_.get(), 1, &device_.id, &size, &data, &loaded, &status));
  if (status != CL_SUCCESS || loaded != CL_SUCCESS) return {};
  if (clBuildProgram(program.get(), 1, &device_.id, options.c_str(), nullptr, nullptr) != CL_SUCCESS) return {};
  return std::make_shared<const Module>(std::move(program));
}

}  // namespace backplane::opencl
