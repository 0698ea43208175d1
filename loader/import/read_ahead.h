// SPDX-License-Identifier: Apache-2.0
// Reads a large file into the page cache while its beginning is being parsed: pages that are read one by one, when they
// are first touched, make both the disk and the reader wait.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>

namespace backplane::model {

class ReadAhead {
 public:
  // Reads from a copy of the descriptor. Ignores small files, and files larger than half of the memory.
  ReadAhead(int descriptor, size_t bytes);
  // Stops reading; waits for the piece that is being read.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

 private:
  void run(size_t bytes);

  int descriptor_ = -1;
  std::atomic<bool> stop_ = false;
  pid_t owner_ = ::getpid();
  std::thread thread_;
};

}  // namespace backplane::model
