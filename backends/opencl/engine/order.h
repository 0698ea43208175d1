// SPDX-License-Identifier: Apache-2.0
// Order around work that goes on after the call that started it: what it waits for, and who is told of its end.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backplane/sdk.hpp"
#include "engine/cl.h"

namespace backplane::opencl {

// What a run asks for, kept until it has ended.
class Order {
 public:
  Order() = default;
  Order(const sdk::Host& host, const bp_run_t& run);

  const bp_run_t& run() const { return run_; }
  // Whether `wait` would block.
  bool must_wait() const;
  // Until all points are reached; throws where one failed, at the deadline and when the run is cancelled.
  void wait() const;
  // Tells the end: `done` first, then the semaphores. Without a failure it was a success.
  void end(const sdk::Error* failure) const;

 private:
  const sdk::Host* host_ = nullptr;
  bp_run_t run_{};
  std::vector<bp_point_t> waits_, signals_;
};

// The queue of the run's stream, or NULL.
cl_command_queue stream_queue(const bp_run_t& run);

// Calls `end` once, with CL_COMPLETE or an error, when all that the queue holds now has ended; from a thread of the
// driver, or at once. Throws where it cannot be called: then it never is.
void when_done(cl_command_queue queue, std::function<void(cl_int)> end);

// What `body` throws, as the error that it is.
template <class Body>
std::optional<sdk::Error> caught(Body&& body) noexcept {
  try {
    body();
    return std::nullopt;
  } catch (const sdk::Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return sdk::Error(BP_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& error) {
    return sdk::Error(BP_INTERNAL, error.what());
  }
}

}  // namespace backplane::opencl
