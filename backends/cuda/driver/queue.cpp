// SPDX-License-Identifier: Apache-2.0
#include "driver/queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "driver/capture.h"
#include "driver/devices.h"

namespace backplane::cuda {

// Polls after a wait has failed: the failure did not stop the commands, and the caller is about to free the memory that
// they use.
template <class Query>
static void poll(const Query& query) {
  while (query() == CUDA_ERROR_NOT_READY) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// ---- memory --------------------------------------------------------------------------------------------------------

Memory::Memory(SharedContext context, uint64_t bytes) : context_(std::move(context)) {
  const Current current(*context_);
  cuda::check(cuda().cuMemAlloc(&address_, std::max<uint64_t>(bytes, 1)),
              "buffer of " + std::to_string(bytes) + " bytes");
}

// The destructor need not wait: cuMemFree waits for work that may still use the memory.
Memory::~Memory() {
  if (!own_) return;
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    cuda().cuMemFree(address_);
  }));
}

// ---- events --------------------------------------------------------------------------------------------------------

Event::Event(SharedContext context, CUstream stream, std::shared_ptr<const Event> base, bool timed)
    : context_(std::move(context)), base_(std::move(base)) {
  const unsigned flags = timed ? unsigned{CU_EVENT_BLOCKING_SYNC} : CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  cuda::check(cuda().cuEventCreate(&event_, flags), "creating an event");
  if (const CUresult status = cuda().cuEventRecord(event_, stream); status != CUDA_SUCCESS) {
    cuda().cuEventDestroy(event_);
    cuda::check(status, "recording an event");
  }
}

Event::~Event() {
  if (!own_) return;
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    cuda().cuEventDestroy(event_);
  }));
}

CUresult Event::wait() const {
  const Current current(*context_);
  const CUresult status = cuda().cuEventSynchronize(event_);
  if (status != CUDA_SUCCESS) poll([this] { return cuda().cuEventQuery(event_); });
  return status;
}

bool Event::ended_well() const {
  const Current current(*context_);
  return cuda().cuEventQuery(event_) == CUDA_SUCCESS;
}

void Event::check(std::string_view what) const {
  const Current current(*context_);
  const CUresult status = cuda().cuEventQuery(event_);
  if (status != CUDA_ERROR_NOT_READY) cuda::check(status, what);
}

// Starts a thread that waits for the event. The thread does not own the CUevent: the caller must keep this object until
// `end` is called.
void Event::when_ended(std::function<void(const sdk::Error*)> end) const {
  std::thread([event = std::make_shared<const Event>(context_, event_), end = std::move(end)] {
    const auto failure = sdk::caught([&] { cuda::check(event->wait(), "an event"); });
    end(failure ? &*failure : nullptr);
  }).detach();
}

uint64_t Event::nanoseconds() const {
  float milliseconds = 0;
  const Current current(*context_);
  if (base_ == nullptr || cuda().cuEventElapsedTime(&milliseconds, base_->get(), event_) != CUDA_SUCCESS) return 0;
  return static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
}

Event::Times Event::times() const {
  if (begin_ == nullptr) return {};
  return {begin_->nanoseconds(), nanoseconds()};
}

// ---- kernels -------------------------------------------------------------------------------------------------------

LoadedModule::LoadedModule(SharedContext context, const std::string& binary) : context_(std::move(context)) {
  const Current current(*context_);
  check(cuda().cuModuleLoadData(&module_, binary.data()), "loading a kernel");
}

LoadedModule::~LoadedModule() {
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    cuda().cuModuleUnload(module_);
  }));
}

Kernel::Kernel(std::shared_ptr<const LoadedModule> module, const std::string& entry)
    : module_(std::move(module)), entry_(entry) {
  const Current current(module_->context());
  check(cuda().cuModuleGetFunction(&function_, module_->get(), entry.c_str()), "kernel '" + entry + "'");
}

void Kernel::set(uint32_t index, const void* value, uint32_t bytes) {
  if (bytes > sizeof(Value))
    throw sdk::Error(BP_INTERNAL, "argument " + std::to_string(index) + " of kernel '" + entry_ +
                                      "' is too large: " + std::to_string(bytes) + " bytes");
  while (pointers_.size() <= index) pointers_.push_back(values_.emplace_back().data());
  std::memcpy(pointers_[index], value, bytes);
}

void Kernel::set(uint32_t index, const gpu::DeviceMemory& memory) {
  const CUdeviceptr address = raw(memory);
  set(index, &address, sizeof address);
}

void Kernel::launch(CUstream stream, const gpu::Ranges& ranges) {
  std::array<unsigned, 3> groups{}, items{};
  for (size_t d = 0; d < 3; ++d) {
    const size_t count = ranges.global[d] / ranges.local[d];
    const size_t most = d == 0 ? 0x7fffffff : kMaxGroupsAcross;
    if (count > most)
      throw sdk::Error(BP_UNSUPPORTED, "kernel '" + entry_ + "' has " + std::to_string(count) +
                                           " groups in dimension " + std::to_string(d) + "; CUDA runs at most " +
                                           std::to_string(most));
    groups[d] = static_cast<unsigned>(count);
    items[d] = static_cast<unsigned>(ranges.local[d]);
  }
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return;
  const CUresult status = cuda().cuLaunchKernel(function_, groups[0], groups[1], groups[2], items[0], items[1],
                                                items[2], 0, stream, pointers_.data(), nullptr);
  if (status != CUDA_SUCCESS) check(status, "kernel '" + entry_ + "'");
}

// ---- gates ---------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t kPageWords = 256;

class WordGate final : public gpu::Gate {
 public:
  explicit WordGate(volatile uint32_t* word) : word_(word) {}
  void open() noexcept override { *word_ = 1; }

 private:
  volatile uint32_t* word_;
};

}  // namespace

Words::~Words() {
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    for (uint32_t* const page : pages_) cuda().cuMemFreeHost(page);
  }));
}

volatile uint32_t* Words::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    const Current current(*context_);
    void* page = nullptr;
    check(cuda().cuMemHostAlloc(&page, kPageWords * sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP), "pinned words");
    pages_.push_back(static_cast<uint32_t*>(page));
    for (size_t i = 0; i < kPageWords; ++i) free_.push_back(pages_.back() + i);
  }
  volatile uint32_t* const word = free_.back();
  free_.pop_back();
  *word = 0;
  return word;
}

void Words::put_back(volatile uint32_t* word) {
  const std::lock_guard lock(mutex_);
  free_.push_back(word);
}

CUdeviceptr Words::device_address(volatile uint32_t* word) const {
  CUdeviceptr address = 0;
  check(cuda().cuMemHostGetDevicePointer(&address, const_cast<uint32_t*>(word), 0), "word of a gate");
  return address;
}

// ---- commands ------------------------------------------------------------------------------------------------------

CommandQueue::CommandQueue(SharedContext context, std::shared_ptr<Words> words, std::shared_ptr<const Event> clock)
    : context_(std::move(context)), words_(std::move(words)), clock_(std::move(clock)) {
  const Current current(*context_);
  check(cuda().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream");
}

CommandQueue::CommandQueue(SharedContext context, std::shared_ptr<Words> words, std::shared_ptr<const Event> clock,
                           CUstream framework)
    : context_(std::move(context)),
      words_(std::move(words)),
      clock_(std::move(clock)),
      stream_(framework),
      own_(false) {}

CommandQueue::~CommandQueue() {
  {
    const std::lock_guard lock(reports_->mutex);
    reports_->stopping = true;
    reports_->changed.notify_all();
  }
  if (reporter_.joinable() && reporter_.get_id() == std::this_thread::get_id())
    reporter_.detach();
  else if (reporter_.joinable())
    reporter_.join();
  if (!own_) return;
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    cuda().cuStreamDestroy(stream_);
  }));
}

bp_native_t CommandQueue::native() const {
  return {sizeof(bp_native_t), BP_NATIVE_CUDA_STREAM, reinterpret_cast<uint64_t>(stream_)};
}

gpu::Event CommandQueue::launch(gpu::DeviceKernel& kernel, const gpu::Ranges& ranges, bool timed) {
  const Current current(*context_);
  std::shared_ptr<const Event> begin;
  if (timed) begin = std::make_shared<const Event>(context_, stream_, clock_, true);
  static_cast<Command&>(kernel).launch(stream_, ranges);
  if (!timed) return nullptr;
  auto end = std::make_shared<Event>(context_, stream_, clock_, true);
  end->begins_with(std::move(begin));
  return end;
}

gpu::Event CommandQueue::write(const gpu::Span& to, const void* from, uint64_t bytes, bool blocking,
                               std::string_view what) {
  const Current current(*context_);
  check(cuda().cuMemcpyHtoDAsync(raw(to), from, bytes, stream_), what);
  if (blocking) finish(what);
  return nullptr;
}

gpu::Event CommandQueue::read(void* to, const gpu::Span& from, uint64_t bytes, bool blocking, std::string_view what) {
  const Current current(*context_);
  check(cuda().cuMemcpyDtoHAsync(to, raw(from), bytes, stream_), what);
  if (blocking) finish(what);
  return nullptr;
}

gpu::Event CommandQueue::copy(const gpu::Span& to, const gpu::Span& from, uint64_t bytes, std::string_view what) {
  const Current current(*context_);
  const CUcontext own = context_->get(), other = static_cast<const Memory&>(*from.memory).context()->get();
  const CUresult status = own == other ? cuda().cuMemcpyDtoDAsync(raw(to), raw(from), bytes, stream_)
                                       : cuda().cuMemcpyPeerAsync(raw(to), own, raw(from), other, bytes, stream_);
  check(status, what);
  return nullptr;
}

void CommandQueue::fill(const gpu::Span& to, uint32_t word, uint64_t bytes, std::string_view what) {
  const Current current(*context_);
  check(cuda().cuMemsetD32Async(raw(to), word, bytes / sizeof word, stream_), what);
}

void CommandQueue::replay(const gpu::DeviceCapture& capture, std::string_view what) {
  const Current current(*context_);
  check(cuda().cuGraphLaunch(static_cast<const Capture&>(capture).get(), stream_), what);
}

bool CommandQueue::is_captured() const {
  const Current current(*context_);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  check(cuda().cuStreamIsCapturing(stream_, &status), "capture state of a stream");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// ---- order ---------------------------------------------------------------------------------------------------------

gpu::Event CommandQueue::mark() {
  const Current current(*context_);
  return std::make_shared<const Event>(context_, stream_);
}

void CommandQueue::wait(std::span<const gpu::Event> events) {
  if (events.empty()) return;
  const Current current(*context_);
  for (const gpu::Event& event : events) {
    if (event == nullptr) continue;
    check(cuda().cuStreamWaitEvent(stream_, static_cast<const Event&>(*event).get(), 0), "wait in a stream");
  }
}

std::unique_ptr<gpu::Gate> CommandQueue::hold() {
  const Current current(*context_);
  volatile uint32_t* const word = words_->take();
  auto gate = std::make_unique<WordGate>(word);
  const auto failure = sdk::caught([&] {
    check(cuda().cuStreamWaitValue32(stream_, words_->device_address(word), 1, CU_STREAM_WAIT_VALUE_GEQ),
          "wait in a stream");
  });
  if (failure) {
    words_->put_back(word);
    throw sdk::Error(*failure);
  }
  const auto kept =
      sdk::caught([&] { when_done([words = words_, word](const sdk::Error*) { words->put_back(word); }); });
  if (kept) {  // no callback will put the word back: the word is never reused, and the stream must not wait for it
    gate->open();
    throw sdk::Error(*kept);
  }
  return gate;
}

void CommandQueue::keep(gpu::Buffer memory) {
  if (sdk::caught([&] { when_done([memory](const sdk::Error*) {}); })) finish_noexcept();
}

void CommandQueue::when_done(std::function<void(const sdk::Error*)> end) {
  Reports::Entry entry;
  {
    const Current current(*context_);
    entry = {std::make_shared<const Event>(context_, stream_), std::move(end)};
  }
  const std::lock_guard lock(mutex_);
  if (!reporter_.joinable()) reporter_ = std::thread([reports = reports_] { report_ends(reports); });
  const std::lock_guard entries(reports_->mutex);
  reports_->entries.push_back(std::move(entry));
  reports_->changed.notify_all();
}

// Events complete in the stream's order, so one thread can wait for them in that order.
void CommandQueue::report_ends(const std::shared_ptr<Reports>& reports) {
  for (;;) {
    Reports::Entry entry;
    {
      std::unique_lock lock(reports->mutex);
      reports->changed.wait(lock, [&] { return reports->stopping || !reports->entries.empty(); });
      if (reports->entries.empty()) return;
      entry = std::move(reports->entries.front());
      reports->entries.pop_front();
    }
    const auto failure = sdk::caught([&] { check(entry.event->wait(), "run"); });
    entry.event.reset();
    entry.end(failure ? &*failure : nullptr);
  }
}

void CommandQueue::finish(std::string_view what) {
  const Current current(*context_);
  bool captured = false;
  const auto unknown = sdk::caught([&] { captured = is_captured(); });
  // cuStreamSynchronize would make the framework's capture invalid.
  if (captured) throw sdk::Error(BP_BAD_STATE, std::string(what) + ": the framework is capturing the stream");
  const CUresult status = cuda().cuStreamSynchronize(stream_);
  if (status != CUDA_SUCCESS) poll([this] { return cuda().cuStreamQuery(stream_); });
  check(status, what);
  if (unknown) throw sdk::Error(*unknown);
}

}  // namespace backplane::cuda
