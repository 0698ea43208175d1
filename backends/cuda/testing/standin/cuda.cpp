// SPDX-License-Identifier: Apache-2.0
// Test code: a stand-in for libcuda.so.1 whose devices are the host. Device memory is host pages, unmapped when freed.
// The stand-in for NVRTC compiles the kernels. Machine code for a GPU loads too, but its kernels do nothing, so that
// the real NVRTC can be tried without a GPU.
//
// Environment variables: STANDIN_ARCH, the devices' compute capability; the default is "90". STANDIN_DEVICES, how many
// devices there are, at most 4; the default is 1.
#include "testing/standin/cuda.h"

#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "testing/standin/devices.h"
#include "testing/standin/group.h"
#include "testing/standin/hooks.h"
#include "testing/standin/stream.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// ---- injected failures, and counts of objects ----------------------------------------------------------------------

struct Watch {
  std::mutex mutex;
  std::string failing;
  uint64_t skips = 0;
  int status = CUDA_SUCCESS;
  std::map<std::string, int64_t> objects;
  std::map<std::string, uint64_t> calls;
};
Watch& watch() {
  static Watch* const kWatch = new Watch;  // never destroyed: streams may outlive static objects
  return *kWatch;
}

// Counts the call; returns the error to inject, or CUDA_SUCCESS.
int called(const char* name) {
  Watch& all = watch();
  const std::lock_guard lock(all.mutex);
  ++all.calls[name];
  if (all.failing != name) return CUDA_SUCCESS;
  if (all.skips > 0) return --all.skips, CUDA_SUCCESS;
  return all.status;
}

void count(const char* kind, int64_t change) {
  const std::lock_guard lock(watch().mutex);
  watch().objects[kind] += change;
}

}  // namespace

struct CUfunc_st {
  CUcontext context = nullptr;              // in which its module was loaded
  const standin::Kernel* kernel = nullptr;  // null: machine code of a GPU, which does nothing
};
struct CUmod_st {
  const CUcontext context = standin::current_context();
  void* library = nullptr;
  std::map<std::string, CUfunc_st> functions;
  std::mutex mutex;
};

namespace {

// ---- memory --------------------------------------------------------------------------------------------------------

// Each allocation of device memory has its own pages, which are unmapped when it is freed: a later access crashes.
std::mutex memory_mutex;
struct DeviceAllocation {
  size_t bytes;  // as requested
  CUdevice device;
};
std::map<CUdeviceptr, DeviceAllocation> allocations;
size_t in_pages(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

int64_t standin_objects(const char* kind) {
  const std::lock_guard lock(watch().mutex);
  return watch().objects[kind];
}

uint64_t standin_calls(const char* function) {
  const std::lock_guard lock(watch().mutex);
  return watch().calls[function];
}

void standin_fail(const char* function, int status, uint64_t skips) {
  const std::lock_guard lock(watch().mutex);
  watch().failing = function == nullptr ? "" : function;
  watch().status = status;
  watch().skips = skips;
}

int standin::called(const char* function) {
  return ::called(function);
}

void standin::count(const char* kind, int64_t change) {
  ::count(kind, change);
}

bool standin::find_memory(CUdeviceptr address, CUdeviceptr& begin, size_t& bytes) {
  const std::lock_guard lock(memory_mutex);
  const auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return false;
  begin = std::prev(after)->first;
  bytes = std::prev(after)->second.bytes;
  return address - begin <= bytes;
}

CUdevice standin::device_of(CUdeviceptr address) {
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  if (!find_memory(address, begin, bytes)) return -1;
  const std::lock_guard lock(memory_mutex);
  const auto at = allocations.find(begin);
  return at == allocations.end() ? -1 : at->second.device;
}

bool standin::enqueue(CUstream stream, std::function<void()> work) {
  return standin::add(stream, std::move(work)) == CUDA_SUCCESS;
}

// ---- kernels -------------------------------------------------------------------------------------------------------

namespace {

// Returns the library of a module's code, or NULL. It is never unloaded: a stream may still be returning from a kernel,
// and thread-local data refer to it. Modules of the same code share it.
void* load_library(std::string_view code) {
  static std::mutex mutex;
  static auto* const kLoaded = new std::map<std::string, void*, std::less<>>;
  const std::lock_guard lock(mutex);
  if (const auto known = kLoaded->find(code); known != kLoaded->end()) return known->second;
  std::string name = (std::filesystem::temp_directory_path() / "standin_XXXXXX").string();
  const int file = mkstemp(name.data());
  for (size_t done = 0; done < code.size();) {
    const ssize_t written = write(file, code.data() + done, code.size() - done);
    if (written <= 0) return close(file), unlink(name.c_str()), nullptr;
    done += static_cast<size_t>(written);
  }
  close(file);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(name.c_str());
  if (library == nullptr) return nullptr;
  *static_cast<void (**)()>(dlsym(library, "standin_barrier")) = standin::barrier;
  return (*kLoaded)[std::string(code)] = library;
}

}  // namespace

EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  auto module = std::make_unique<CUmod_st>();
  standin::ImageHeader header;
  const standin::ImageHeader expected;
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) == 0) {
    count("modules", 1);
    *out = module.release();
    return CUDA_SUCCESS;
  }
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0) return CUDA_ERROR_INVALID_IMAGE;
  module->library = load_library({static_cast<const char*>(image) + sizeof header, header.bytes});
  if (module->library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  count("modules", 1);
  *out = module.release();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  if (!standin::has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  REFUSE_IF_UNSAFE();
  count("modules", -1);
  delete module;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  IN_CONTEXT();
  const std::lock_guard lock(module->mutex);
  CUfunc_st& function = module->functions[name];
  function.context = module->context;
  if (module->library != nullptr) {
    function.kernel =
        static_cast<const standin::Kernel*>(dlsym(module->library, (std::string("standin_") + name).c_str()));
    if (function.kernel == nullptr) {
      std::fprintf(stderr, "stand-in for CUDA: %s\n", dlerror());
      return CUDA_ERROR_NOT_FOUND;
    }
  }
  *out = &function;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y,
                               unsigned z, unsigned, CUstream stream, void** values, void**) {
  IN_CONTEXT();
  if (gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || size_t{x} * y * z > 1024 || x * y * z == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (function->context != standin::current_context() || !standin::is_of_current(stream))
    return CUDA_ERROR_INVALID_HANDLE;
  if (function->kernel == nullptr) return CUDA_SUCCESS;
  const standin::Kernel kernel = *function->kernel;
  const std::shared_ptr<void> pack(kernel.pack(values), std::free);
  return standin::add(stream, [kernel, pack, groups = std::array{gx, gy, gz}, size = std::array{x, y, z}] {
    standin::run(kernel, pack.get(), groups, size);
  });
}

// ---- memory --------------------------------------------------------------------------------------------------------

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > (size_t{2} << 30)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const address = mmap(nullptr, in_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUdeviceptr>(address);
  const std::lock_guard lock(memory_mutex);
  allocations[*out] = {bytes, standin::current_context()->device};
  count("memory", 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr memory) {
  if (!standin::has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  REFUSE_IF_UNSAFE();
  standin::wait_for_all();
  const std::lock_guard lock(memory_mutex);
  const auto at = allocations.find(memory);
  if (at == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(memory), in_pages(at->second.bytes));
  allocations.erase(at);
  count("memory", -1);
  return CUDA_SUCCESS;
}

namespace {

// Whether CUDA can capture copies of pageable memory depends on its version, so the stand-in refuses them in a capture.
CUresult refuse_pageable(const void* memory, size_t bytes, CUstream stream) {
  return standin::is_pinned(memory, bytes) ? CUDA_SUCCESS : standin::refuse_in_capture(stream);
}

CUresult copy(void* to, const void* from, size_t bytes, CUstream stream) {
  return standin::add(stream, [=] { std::memmove(to, from, bytes); });
}

}  // namespace

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  IN_CONTEXT();
  if (const CUresult refused = refuse_pageable(from, bytes, stream); refused != CUDA_SUCCESS) return refused;
  return copy(reinterpret_cast<void*>(to), from, bytes, stream);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  IN_CONTEXT();
  if (const CUresult refused = refuse_pageable(to, bytes, stream); refused != CUDA_SUCCESS) return refused;
  if (!standin::is_pinned(to, bytes)) static_cast<void>(called("read into pageable memory"));
  return copy(to, reinterpret_cast<const void*>(from), bytes, stream);
}

// CUDA also accepts addresses on two devices that can access each other's memory. The stand-in's devices cannot.
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  IN_CONTEXT();
  if (standin::device_of(to) != standin::device_of(from)) return CUDA_ERROR_INVALID_VALUE;
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, stream);
}

// Copies between the memory of two devices, which need not be able to access each other's memory.
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t bytes, CUstream stream) {
  IN_CONTEXT();
  if (standin::device_of(to) != to_context->device || standin::device_of(from) != from_context->device)
    return CUDA_ERROR_INVALID_VALUE;
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, stream);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned word, size_t words, CUstream stream) {
  IN_CONTEXT();
  return standin::add(stream, [=] {
    for (size_t i = 0; i < words; ++i) std::memcpy(reinterpret_cast<char*>(to) + i * sizeof word, &word, sizeof word);
  });
}
