// SPDX-License-Identifier: Apache-2.0
// Test code: a stand-in for libcuda.so.1 with one device, the host. Each stream is a thread that runs its work in order
// and, like a CUDA stream, can wait for events and for words in memory. Device memory is host pages, unmapped when
// freed. The stand-in for NVRTC compiles the kernels. Machine code for a GPU loads too, but its kernels do nothing, so
// that the real NVRTC can be tried without a GPU.
//
// Environment variable STANDIN_ARCH: the device's compute capability; the default is "90".
#include "testing/standin/cuda.h"

#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "testing/standin/group.h"
#include "testing/standin/hooks.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Clock = std::chrono::steady_clock;

// ---- injected failures, and counts of objects ----------------------------------------------------------------------

struct Watch {
  std::mutex mutex;
  std::string failing;
  uint64_t skips = 0;
  CUresult status = CUDA_SUCCESS;
  std::map<std::string, int64_t> objects;
  std::map<std::string, uint64_t> calls;
};
Watch& watch() {
  static Watch* const kWatch = new Watch;  // never destroyed: streams may outlive static objects
  return *kWatch;
}

// Counts the call; returns the error to inject, or CUDA_SUCCESS.
CUresult called(const char* name) {
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

#define CALLED() \
  if (const CUresult refused = called(__func__); refused != CUDA_SUCCESS) return refused

// ---- order ---------------------------------------------------------------------------------------------------------

// Shared by all streams and events; never destroyed, as threads may still be waiting when the process exits.
std::mutex& order_mutex = *new std::mutex;
std::condition_variable& order_changed = *new std::condition_variable;

}  // namespace

struct EventState {
  uint64_t recorded = 0, reached = 0;  // how often it was recorded; the last recording that its stream reached
  Clock::time_point time;
};
struct CUevent_st {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();  // streams may outlive the event
};

struct CUstream_st {
  std::deque<std::function<void()>> work;
  bool busy = false, stopping = false;
  std::thread thread;

  CUstream_st() : thread([this] { run(); }) {}
  void run() {
    std::unique_lock lock(order_mutex);
    for (;;) {
      order_changed.wait(lock, [this] { return stopping || !work.empty(); });
      if (work.empty()) return;
      const std::function<void()> next = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      next();
      lock.lock();
      busy = false;
      order_changed.notify_all();
    }
  }
  void add(std::function<void()> next) {
    const std::lock_guard lock(order_mutex);
    work.push_back(std::move(next));
    order_changed.notify_all();
  }
  bool idle() const { return work.empty() && !busy; }
};

struct CUctx_st {};
struct CUfunc_st {
  const standin::Kernel* kernel = nullptr;  // null: machine code of a GPU, which does nothing
};
struct CUmod_st {
  void* library = nullptr;
  std::map<std::string, CUfunc_st> functions;
  std::mutex mutex;
};

namespace {

CUctx_st context;
thread_local std::vector<CUcontext> current;

std::set<CUstream>& streams = *new std::set<CUstream>;  // guarded by order_mutex

// Returns `stream`, or the default stream if it is null.
CUstream stream_of(CUstream stream) {
  static CUstream_st* const kDefault = [] {
    auto* made = new CUstream_st;
    made->thread.detach();
    const std::lock_guard lock(order_mutex);
    streams.insert(made);
    return made;
  }();
  return stream == nullptr ? kDefault : stream;
}

void wait_for_all() {
  std::unique_lock lock(order_mutex);
  order_changed.wait(lock, [] {
    for (const CUstream each : streams)
      if (!each->idle()) return false;
    return true;
  });
}

// ---- memory --------------------------------------------------------------------------------------------------------

// Each allocation of device memory has its own pages, which are unmapped when it is freed: a later access crashes.
std::mutex memory_mutex;
std::map<CUdeviceptr, size_t> allocations;  // their sizes as asked for
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

void standin_fail(const char* function, CUresult status, uint64_t skips) {
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

bool standin::has_context() {
  return !current.empty();
}

bool standin::find_memory(CUdeviceptr address, CUdeviceptr& begin, size_t& bytes) {
  const std::lock_guard lock(memory_mutex);
  const auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return false;
  std::tie(begin, bytes) = *std::prev(after);
  return address - begin <= bytes;
}

void standin::enqueue(CUstream stream, std::function<void()> work) {
  stream_of(stream)->add(std::move(work));
}

// ---- devices -------------------------------------------------------------------------------------------------------

EXPORT CUresult cuInit(unsigned) {
  CALLED();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int* number) {
  CALLED();
  *number = 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice* device, int index) {
  if (index != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "Stand-in for a GPU", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  const char* const arch = std::getenv("STANDIN_ARCH");
  const int capability = arch == nullptr ? 90 : std::atoi(arch);
  switch (what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 16;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 48 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1000000;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice) {
  std::strncpy(text, "0000:0A:00.0", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = size_t{2} << 30;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice) {
  CALLED();
  count("contexts", 1);
  *out = &context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  count("contexts", -1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent(CUcontext own) {
  current.push_back(own);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent(CUcontext* own) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *own = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = 0;
  return CUDA_SUCCESS;
}

// For calls that CUDA refuses without a current context.
#define IN_CONTEXT() \
  CALLED();          \
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT

// ---- kernels -------------------------------------------------------------------------------------------------------

EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  IN_CONTEXT();
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
  // dlopen returns the library that is already loaded under a name, so each module needs its own file.
  std::string name = (std::filesystem::temp_directory_path() / "standin_XXXXXX").string();
  const int file = mkstemp(name.data());
  const auto* from = static_cast<const char*>(image) + sizeof header;
  for (size_t left = header.bytes; left > 0;) {
    const ssize_t written = write(file, from, left);
    if (written <= 0) return close(file), unlink(name.c_str()), CUDA_ERROR_OPERATING_SYSTEM;
    from += written;
    left -= static_cast<size_t>(written);
  }
  close(file);
  module->library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(name.c_str());
  if (module->library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  *static_cast<void (**)()>(dlsym(module->library, "standin_barrier")) = standin::barrier;
  count("modules", 1);
  *out = module.release();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  count("modules", -1);
  // The library stays loaded: a stream may still be returning from its last kernel, and thread-local data refer to it.
  delete module;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  IN_CONTEXT();
  const std::lock_guard lock(module->mutex);
  CUfunc_st& function = module->functions[name];
  if (module->library != nullptr) {
    function.kernel =
        static_cast<const standin::Kernel*>(dlsym(module->library, (std::string("standin_") + name).c_str()));
    if (function.kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  }
  *out = &function;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y,
                               unsigned z, unsigned, CUstream stream, void** values, void**) {
  IN_CONTEXT();
  if (gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || size_t{x} * y * z > 1024 || x * y * z == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (function->kernel == nullptr) return CUDA_SUCCESS;
  const standin::Kernel kernel = *function->kernel;
  const std::shared_ptr<void> pack(kernel.pack(values), std::free);
  stream_of(stream)->add([kernel, pack, groups = std::array{gx, gy, gz}, size = std::array{x, y, z}] {
    standin::run(kernel, pack.get(), groups, size);
  });
  return CUDA_SUCCESS;
}

// ---- memory --------------------------------------------------------------------------------------------------------

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  IN_CONTEXT();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > (size_t{2} << 30)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const address = mmap(nullptr, in_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUdeviceptr>(address);
  const std::lock_guard lock(memory_mutex);
  allocations[*out] = bytes;
  count("memory", 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr memory) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  wait_for_all();
  const std::lock_guard lock(memory_mutex);
  const auto at = allocations.find(memory);
  if (at == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(memory), in_pages(at->second));
  allocations.erase(at);
  count("memory", -1);
  return CUDA_SUCCESS;
}

namespace {

CUresult copy(void* to, const void* from, size_t bytes, CUstream stream) {
  stream_of(stream)->add([=] { std::memmove(to, from, bytes); });
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  IN_CONTEXT();
  return copy(reinterpret_cast<void*>(to), from, bytes, stream);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  IN_CONTEXT();
  return copy(to, reinterpret_cast<const void*>(from), bytes, stream);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  IN_CONTEXT();
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, stream);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned word, size_t words, CUstream stream) {
  IN_CONTEXT();
  stream_of(stream)->add([=] {
    for (size_t i = 0; i < words; ++i) std::memcpy(reinterpret_cast<char*>(to) + i * sizeof word, &word, sizeof word);
  });
  return CUDA_SUCCESS;
}

// ---- streams and events --------------------------------------------------------------------------------------------

EXPORT CUresult cuStreamCreate(CUstream* out, unsigned) {
  IN_CONTEXT();
  *out = new CUstream_st;
  const std::lock_guard lock(order_mutex);
  streams.insert(*out);
  count("streams", 1);
  return CUDA_SUCCESS;
}

// Unlike CUDA's function, waits for the stream's work, so that no work outlives the test that started it.
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  {
    const std::lock_guard lock(order_mutex);
    stream->stopping = true;
    order_changed.notify_all();
  }
  stream->thread.join();
  {
    const std::lock_guard lock(order_mutex);
    streams.erase(stream);
  }
  delete stream;
  count("streams", -1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  IN_CONTEXT();
  const CUstream own = stream_of(stream);
  std::unique_lock lock(order_mutex);
  order_changed.wait(lock, [&] { return own->idle(); });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream, CUcontext* out) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *out = &context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  IN_CONTEXT();
  const std::shared_ptr<EventState> state = event->state;
  uint64_t recorded = 0;
  {
    const std::lock_guard lock(order_mutex);
    recorded = state->recorded;
  }
  stream_of(stream)->add([=] {
    std::unique_lock lock(order_mutex);
    order_changed.wait(lock, [&] { return state->reached >= recorded; });
  });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr word, cuuint32_t value, unsigned) {
  IN_CONTEXT();
  stream_of(stream)->add([=] {
    while (*reinterpret_cast<volatile uint32_t*>(word) < value)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent* out, unsigned) {
  IN_CONTEXT();
  *out = new CUevent_st;
  count("events", 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  count("events", -1);
  delete event;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  IN_CONTEXT();
  const std::shared_ptr<EventState> state = event->state;
  uint64_t turn = 0;
  {
    const std::lock_guard lock(order_mutex);
    turn = ++state->recorded;
  }
  stream_of(stream)->add([=] {
    const std::lock_guard lock(order_mutex);
    state->reached = turn;
    state->time = Clock::now();
    order_changed.notify_all();
  });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event) {
  IN_CONTEXT();
  const std::lock_guard lock(order_mutex);
  return event->state->reached >= event->state->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
  IN_CONTEXT();
  std::unique_lock lock(order_mutex);
  order_changed.wait(lock, [&] { return event->state->reached >= event->state->recorded; });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(order_mutex);
  *milliseconds = std::chrono::duration<float, std::milli>(to->state->time - from->state->time).count();
  return CUDA_SUCCESS;
}
