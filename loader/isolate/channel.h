// SPDX-License-Identifier: Apache-2.0
// Connects one thread of the loader with one thread of a backend's process. The two sides take turns. A page of shared
// memory records whose turn it is and the parameters of a run. A stream socket carries everything else.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "isolate/descriptor.h"
#include "isolate/operation.h"

namespace backplane::isolate {

enum class Side : uint32_t { kLoader, kBackend };

// What the side that receives the turn has to do.
enum class Turn : uint32_t {
  kMessage,
  kRun,   // sent by the loader: run the instance in the page's `instance`, with the fields below it
  kDone,  // sent by the backend: the run succeeded
};

// Located in shared memory. The other side may write anything at any time, so the fields of a run are read only once.
struct Page {
  std::atomic<uint32_t> side;         // whose turn it is
  std::atomic<uint32_t> sleeping[2];  // by side: 1 while it waits in the kernel
  std::atomic<uint32_t> turn;
  std::atomic<uint64_t> instance;
  std::atomic<uint64_t> deadline;  // bp_run_t.deadline
  std::atomic<uint64_t> id;        // bp_run_t.id
  std::atomic<uint64_t> trace_id;  // bp_run_t.trace_id
  std::atomic<int32_t> priority;
  std::atomic<uint32_t> cancellable, tracing;
  std::atomic<uint64_t> call;       // number of the call in progress
  std::atomic<uint32_t> cancelled;  // nonzero: the call was cancelled, perhaps before the process has read it
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct Message {
  Operation operation = Operation::kReply;
  std::string bytes;
  std::vector<Descriptor> files;
};

// Called from time to time while a side waits, sends or receives. A status other than OK ends the wait or transfer and
// is returned.
class Check {
 public:
  virtual ~Check() = default;
  virtual Status check() = 0;
};

class Channel {
 public:
  // Creates the loader's end. The socket and page in the out parameters are for the backend's process.
  static Result<std::unique_ptr<Channel>> make(Descriptor& out_socket, Descriptor& out_page);
  // Creates the backend's end; null if `page` is too small or cannot be mapped.
  static std::unique_ptr<Channel> take(Descriptor socket, const Descriptor& page);

  Page& page() const { return *reinterpret_cast<Page*>(mapping_.data()); }
  // Passes the turn to the other side.
  void pass(Turn turn) const;
  // Waits for this side's turn. Spins first, up to 30 µs, and less if recent spins did not help. Calls `check` after
  // every `slice_us` µs of sleep.
  Status await(Check& check, uint32_t slice_us);
  // Wakes this side's thread if it sleeps in `await`, so that it calls `check` now. Thread-safe.
  void wake() const;
  // The turn that the other side passed. It is not checked, and may be any number.
  Turn turn() const { return static_cast<Turn>(page().turn.load(std::memory_order_relaxed)); }

  // Sends a message. Call `pass` first, so that the other side is reading if the message exceeds the socket's buffer.
  // `send` and `receive` return BP_DEVICE_LOST if the other side has closed its end.
  Status send(Operation operation, const std::string& bytes, const std::vector<int>& files, Check& check) const;
  // Receives a message. BP_CORRUPT if it is malformed or longer than `most` bytes.
  Result<Message> receive(uint64_t most, Check& check) const;

 private:
  Channel(Side side, Descriptor socket, Mapping mapping);
  // Waits until the socket is ready, but no longer than a slice.
  Status wait_for(short events) const;
  Status read_all(char* to, uint64_t bytes, Check& check) const;

  bool spin();

  Side side_;
  uint32_t spin_us_;
  uint32_t awaited_ = 0;
  Descriptor socket_;
  Mapping mapping_;
};

inline constexpr uint64_t kMostRequest = uint64_t{2} << 30;  // largest message to the backend's process, in bytes
inline constexpr uint64_t kMostReply = uint64_t{256} << 20;  // largest message to the loader, in bytes
inline constexpr uint32_t kSliceUs = 20'000;
inline constexpr size_t kMostFiles = 4;  // descriptors that one message can carry

}  // namespace backplane::isolate
