// SPDX-License-Identifier: Apache-2.0
// The exception that a failed call throws.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "backplane/loader.h"

namespace backplane {
inline namespace client {

// A failed call: the status, a one-line message, and the node that caused it, if one did.
class Error : public std::runtime_error {
 public:
  Error(bp_status_t status, const std::string& text, uint64_t node = BP_NO_NODE, int64_t vendor_code = 0,
        uint32_t flags = 0, uint64_t run = 0)
      : std::runtime_error(text), status_(status), node_(node), vendor_code_(vendor_code), flags_(flags), run_(run) {}

  bp_status_t status() const { return status_; }
  uint32_t status_class() const { return BP_STATUS_CLASS(status_); }  // BP_CLASS_*: what to do next
  std::string text() const { return what(); }
  uint64_t node() const { return node_; }  // bp_node_t.id, or BP_NO_NODE
  int64_t vendor_code() const { return vendor_code_; }
  bool device_lost() const { return (flags_ & BP_ERROR_DEVICE_LOST) != 0; }
  // Whether a device stopped responding. If so, the memory bound to the exec must stay allocated.
  bool abandoned() const { return (flags_ & BP_ERROR_ABANDONED) != 0; }
  // Whether another run failed, and the call only reports that failure, as Stream::wait does.
  bool of_run() const { return (flags_ & BP_ERROR_OF_RUN) != 0; }
  // bp_run_t.id of the run that failed, if the call reports another run's failure; otherwise 0.
  uint64_t run() const { return run_; }

 private:
  bp_status_t status_;
  uint64_t node_;
  int64_t vendor_code_;
  uint32_t flags_;
  uint64_t run_;
};

}  // namespace client
}  // namespace backplane
