// SPDX-License-Identifier: Apache-2.0
// Reads a large file into the page cache while its beginning is being parsed. Otherwise each page would be read when it
// is first touched, and the disk and the parser would wait for each other.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>

namespace backplane::model {

class ReadAhead {
 public:
  // Reads from a copy of the descriptor, on a thread. Does nothing for files smaller than 64 MiB, for files larger than
  // half of the machine's memory, or while 8 such threads run.
  ReadAhead(int descriptor, size_t bytes);
  // Stops reading. Waits only for the piece that is being read.
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
