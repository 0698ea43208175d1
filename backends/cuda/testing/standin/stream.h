// SPDX-License-Identifier: Apache-2.0
// Test code: streams and events of the stand-in for libcuda.so.1. Each stream is a thread that runs its commands in
// order; while a stream is captured, its commands are recorded instead.
#pragma once

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace standin {

// Shared by all streams and events; never destroyed, as threads may still be waiting when the process exits.
extern std::mutex& order_mutex;
extern std::condition_variable& order_changed;

using Commands = std::vector<std::function<void()>>;

// A capture in progress.
struct Recording {
  CUstreamCaptureMode mode;
  std::thread::id thread;  // the thread that began the capture
  Commands commands;
  bool is_valid = true;
};

}  // namespace standin

struct EventState {
  const CUcontext context;             // in which it was created
  uint64_t recorded = 0, reached = 0;  // how often it was recorded; which of these recordings its stream has reached
  CUstream captured_in = nullptr;      // the stream whose capture recorded it last
  std::chrono::steady_clock::time_point time;
  int waiting = 0;  // threads that wait for the event
};
struct CUevent_st {
  std::shared_ptr<EventState> state;  // streams may outlive the event
};

struct CUstream_st {
  std::deque<std::function<void()>> work;
  bool busy = false, stopping = false;
  const CUcontext context;
  const bool blocks_default;                      // capturing it makes the default stream unusable
  std::unique_ptr<standin::Recording> recording;  // NULL while it is not captured; guarded by order_mutex
  std::thread thread;

  CUstream_st(CUcontext own, bool blocks) : context(own), blocks_default(blocks), thread([this] { run(); }) {}
  bool idle() const { return work.empty() && !busy; }

 private:
  void run();
};

namespace standin {

// Whether every command that is captured makes its capture invalid (standin_fail_in_capture); guarded by order_mutex.
extern bool fails_in_capture;
// All streams, guarded by order_mutex.
extern std::set<CUstream>& streams;
// Returns `stream`, or the current context's default stream if it is null.
CUstream stream_of(CUstream stream);
// Whether the stream belongs to the current context, as CUDA requires of launches and of events to be recorded.
bool is_of_current(CUstream stream);
// Adds a command to a stream, or to its capture.
CUresult add(CUstream stream, std::function<void()> next);
void wait_for_all();

// If the stream is being captured, refuses what cannot be part of a capture, and invalidates that capture.
CUresult refuse_in_capture(CUstream stream);

}  // namespace standin
