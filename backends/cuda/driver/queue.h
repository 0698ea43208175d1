// SPDX-License-Identifier: Apache-2.0
// The engine's memory, events, kernels and queues, implemented with CUDA objects.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/cuda.h"
#include "engine/driver.h"

namespace backplane::cuda {

class Memory final : public gpu::DeviceMemory {
 public:
  // Allocates memory, which the destructor frees.
  Memory(SharedContext context, uint64_t bytes);
  // A part of `whole`, or the framework's memory if `whole` is NULL. The destructor does not free it.
  Memory(SharedContext context, gpu::Buffer whole, CUdeviceptr address)
      : context_(std::move(context)), whole_(std::move(whole)), address_(address), own_(false) {}
  ~Memory() override;
  bool is_aligned(uint32_t bytes) const override { return address_ % bytes == 0; }
  CUdeviceptr get() const { return address_; }
  const SharedContext& context() const { return context_; }

 private:
  SharedContext context_;
  gpu::Buffer whole_;
  CUdeviceptr address_ = 0;
  bool own_ = true;
};
inline CUdeviceptr raw(const gpu::DeviceMemory& memory) {
  return static_cast<const Memory&>(memory).get();
}
inline CUdeviceptr raw(const gpu::Span& span) {
  return raw(*span.memory) + span.offset;
}

// The destructor destroys the backend's own events, but not the framework's.
class Event final : public gpu::DeviceEvent {
 public:
  Event(SharedContext context, CUevent framework) : context_(std::move(context)), event_(framework), own_(false) {}
  // Records an event in the stream; the context must be current. `times` counts from `base`, and returns zeros
  // unless this event, `base` and the event given to `begins_with` were all recorded with `timed`.
  Event(SharedContext context, CUstream stream, std::shared_ptr<const Event> base = {}, bool timed = false);
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() override;
  CUevent get() const { return event_; }
  CUresult wait() const;  // blocks until the event has completed
  // `begin` was recorded just before the command whose end this event marks, with the same `base`.
  void begins_with(std::shared_ptr<const Event> begin) { begin_ = std::move(begin); }

  bool ended_well() const override;
  void check(std::string_view what) const override;
  void when_ended(std::function<void(const sdk::Error*)> end) const override;
  Times times() const override;

 private:
  uint64_t nanoseconds() const;

  SharedContext context_;
  CUevent event_ = nullptr;
  bool own_ = true;
  std::shared_ptr<const Event> base_, begin_;
};

// A module stays loaded while any of its kernels exists.
class LoadedModule {
 public:
  LoadedModule(SharedContext context, const std::string& binary);
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  ~LoadedModule();
  CUmodule get() const { return module_; }
  const Context& context() const { return *context_; }

 private:
  SharedContext context_;
  CUmodule module_ = nullptr;
};

// A command that a stream can run: a kernel, or a call of a library.
class Command : public gpu::DeviceKernel {
 public:
  // The stream's context must be current on the calling thread.
  virtual void launch(CUstream stream, const gpu::Ranges& ranges) = 0;
};

class Kernel final : public Command {
 public:
  Kernel(std::shared_ptr<const LoadedModule> module, const std::string& entry);
  void set(uint32_t index, const void* value, uint32_t bytes) override;
  void set(uint32_t index, const gpu::DeviceMemory& memory) override;
  void launch(CUstream stream, const gpu::Ranges& ranges) override;

 private:
  using Value = std::array<std::byte, 32>;
  std::shared_ptr<const LoadedModule> module_;
  std::string entry_;
  CUfunction function_ = nullptr;
  std::deque<Value> values_;  // a deque, as `pointers_` point into it
  std::vector<void*> pointers_;
};

// 32-bit words in pinned host memory, for Driver::host_word and for gates. A gate takes a word, and its stream waits
// until the host writes 1 to the word.
class Words {
 public:
  explicit Words(SharedContext context) : context_(std::move(context)) {}
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  ~Words();
  // Returns a word with the value 0. Call `put_back` when no stream uses it any more.
  volatile uint32_t* take();
  void put_back(volatile uint32_t* word);
  CUdeviceptr device_address(volatile uint32_t* word) const;

 private:
  SharedContext context_;
  mutable std::mutex mutex_;
  std::vector<uint32_t*> pages_;
  std::vector<volatile uint32_t*> free_;
};

class CommandQueue final : public gpu::CommandQueue {
 public:
  // The first constructor creates a stream, the second uses the framework's stream. Device times are measured from
  // `clock`.
  CommandQueue(SharedContext context, std::shared_ptr<Words> words, std::shared_ptr<const Event> clock);
  CommandQueue(SharedContext context, std::shared_ptr<Words> words, std::shared_ptr<const Event> clock,
               CUstream framework);
  ~CommandQueue() override;
  bp_native_t native() const override;
  CUstream get() const { return stream_; }

  gpu::Event launch(gpu::DeviceKernel& kernel, const gpu::Ranges& ranges, bool timed) override;
  gpu::Event write(const gpu::Span& to, const void* from, uint64_t bytes, bool blocking,
                   std::string_view what) override;
  gpu::Event read(void* to, const gpu::Span& from, uint64_t bytes, bool blocking, std::string_view what) override;
  // `from` may be memory of another device.
  gpu::Event copy(const gpu::Span& to, const gpu::Span& from, uint64_t bytes, std::string_view what) override;
  void fill(const gpu::Span& to, uint32_t word, uint64_t bytes, std::string_view what) override;
  void replay(const gpu::DeviceCapture& capture, std::string_view what) override;
  bool is_captured() const override;

  gpu::Event mark() override;
  void wait(std::span<const gpu::Event> events) override;
  std::unique_ptr<gpu::Gate> hold() override;
  void keep(gpu::Buffer memory) override;
  void when_done(std::function<void(const sdk::Error*)> end) override;
  void flush() override {}  // CUDA starts enqueued work by itself
  void finish(std::string_view what) override;

 private:
  // The thread `reporter_` waits for the entries' events in order, and calls each entry's `end` after its event.
  struct Reports {
    struct Entry {
      std::shared_ptr<const Event> event;
      std::function<void(const sdk::Error*)> end;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Entry> entries;
    bool stopping = false;
  };
  static void report_ends(const std::shared_ptr<Reports>& reports);

  SharedContext context_;
  std::shared_ptr<Words> words_;
  std::shared_ptr<const Event> clock_;
  CUstream stream_ = nullptr;
  bool own_ = true;
  std::shared_ptr<Reports> reports_ = std::make_shared<Reports>();
  std::mutex mutex_;
  std::thread reporter_;  // started with the first `when_done`
};

}  // namespace backplane::cuda
