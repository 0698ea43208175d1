// SPDX-License-Identifier: Apache-2.0
#include "cli/guarded.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "cli/printable.h"
#include "cli/usage.h"

namespace backplane::cli {
namespace {

void keep_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // open() returns the lowest free descriptor, which is the stream's. Standard input is opened for writing and
    // standard output for reading, so that using them still fails.
    (void)open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

[[noreturn]] void refuse_output() {
  throw std::runtime_error(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
}

}  // namespace

int guarded(std::string_view program, const std::function<int()>& run) {
  keep_streams();
  try {
    return run();
  } catch (const Usage& error) {
    print_err(fmt::format("{}: {}\n", program, printable(error.what())));
    return kWrongUsage;
  } catch (const std::exception& error) {
    print_err(fmt::format("{}: {}\n", program, printable(error.what())));
    return kNegative;
  }
}

void print_err(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) refuse_output();
}

int printed(int status) {
  errno = EIO;  // the reason of an earlier failure is not known any more
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_output();
  return status;
}

}  // namespace backplane::cli
