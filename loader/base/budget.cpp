// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

namespace backplane {
namespace {

// A node takes at least 60 bytes in an ONNX file and about 600 bytes of memory in a graph. kLeastBytes leaves room for
// small files whose function calls are inlined many times or whose shapes are computed.
constexpr uint64_t kBytesPerFileByte = 32, kLeastBytes = uint64_t{256} << 20;
// 60 s and 1 µs for each byte of the file: about a hundred times as long as importing a large graph takes.
constexpr double kSecondsPerFileByte = 1e-6, kLeastSeconds = 60;

uint64_t bytes_of(const ImportLimits& limits, uint64_t file_bytes) {
  if (limits.bytes) return *limits.bytes ? *limits.bytes : UINT64_MAX;
  return kLeastBytes + kBytesPerFileByte * std::min(file_bytes, uint64_t{1} << 50);
}

double seconds_of(const ImportLimits& limits, uint64_t file_bytes) {
  return limits.seconds.value_or(kLeastSeconds + kSecondsPerFileByte * static_cast<double>(file_bytes));
}

// As it was given, such as 0.5 or 1e-07, to nine digits.
std::string number_text(double seconds) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), seconds, std::chars_format::general, 9).ptr};
}

}  // namespace

Budget::Budget(const ImportLimits& limits, uint64_t file_bytes)
    : Budget(bytes_of(limits, file_bytes), seconds_of(limits, file_bytes)) {}

Budget::Budget(uint64_t bytes, double seconds)
    : bytes_(bytes), seconds_(seconds), start_(std::chrono::steady_clock::now()) {}

void Budget::fail_bytes(uint64_t asked, std::string_view doing) const {
  throw Exhausted{
      Status(BP_RESOURCE_EXHAUSTED, std::string(doing) + " takes more memory than the " + std::to_string(bytes_) +
                                        " bytes that are allowed (the last request was for " + std::to_string(asked) +
                                        " bytes); set option loader.import_bytes to allow more, 0 for no limit")};
}

void Budget::look(std::string_view doing) const {
  if (seconds_ <= 0) return;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  if (passed.count() <= seconds_) return;
  throw Exhausted{
      Status(BP_TIMED_OUT, std::string(doing) + " was stopped: the time limit of " + number_text(seconds_) +
                               " s has passed; set option loader.import_seconds to allow more, 0 for no limit")};
}

}  // namespace backplane
