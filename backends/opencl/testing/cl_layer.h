// SPDX-License-Identifier: Apache-2.0
// OpenCL as the backend sees it in tests: calls are passed to the real OpenCL, objects are counted, and selected calls
// are made to fail. The functions are defined in the test program, which the dynamic linker searches before the ICD
// loader.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace backplane::opencl::testing {

class ClLayer {
 public:
  // References that are held at present: objects created, plus retains, minus releases.
  struct References {
    int64_t contexts, queues, memories, programs, kernels, events;
    bool operator==(const References&) const = default;
    int64_t all() const { return contexts + queues + memories + programs + kernels + events; }
  };
  References references() const;

  // Counts since the start of the program.
  std::atomic<uint64_t> from_source{0};   // programs created from source
  std::atomic<uint64_t> from_binary{0};   // programs created from a binary that the driver accepted
  std::atomic<uint64_t> launches{0};      // kernels enqueued
  std::atomic<uint64_t> copies{0};        // reads, writes and copies of buffers
  std::atomic<uint64_t> copied_bytes{0};  // bytes of these copies
  std::atomic<uint64_t> imports{0};       // buffers over host memory
  std::atomic<uint64_t> maps{0};          // commands that map or unmap memory
  std::atomic<uint64_t> callbacks{0};     // registered event callbacks
  std::atomic<uint64_t> unflushed{0};     // commands since the last clFlush or clFinish, except fills and barriers
  std::atomic<uint64_t> queries{0};       // calls of clGetEventInfo
  std::atomic<uint64_t> waits{0};         // calls that block until commands have ended
  std::atomic<uint64_t> refused{0};       // calls that were made to fail

  // The number of kernels of this name that were created since the start of the program.
  uint64_t created(const std::string& kernel) const;

  // After `good` more successful calls, calls of `function` fail with `status` until `clear_failures`. With "the end"
  // as `function`, event callbacks report `status`, as if the work had failed.
  void fail(std::string function, cl_int status, uint64_t good = 0);
  // Text that is prepended to programs created from source.
  void prepend_to_sources(std::string with);
  // The driver version that devices report.
  void set_driver_version(std::string version);
  // Creating a buffer of more than `bytes` bytes fails.
  void limit_buffers(uint64_t bytes) { buffer_limit = bytes; }
  // Undoes the four settings above.
  void clear_failures();

  // ---- for the OpenCL functions that the layer defines ----
  std::atomic<uint64_t> buffer_limit{UINT64_MAX};
  cl_int failure(const char* function);  // CL_SUCCESS: call the real function
  std::string prepended() const;
  std::string driver() const;
  void report_created(const char* kernel);
  std::atomic<int64_t> contexts{0}, queues{0}, memories{0}, programs{0}, kernels{0}, events{0};

 private:
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> created_;
  std::string failing_, prepended_, driver_;
  cl_int status_ = CL_SUCCESS;
  uint64_t good_ = 0;
};

ClLayer& cl_layer();

}  // namespace backplane::opencl::testing
