// SPDX-License-Identifier: Apache-2.0
// nvrtc_check FOLDER ARCH…: compiles the kernels that a run on the stand-in left in FOLDER (testing/standin/nvrtc.cpp)
// with the real NVRTC, which needs no GPU, and prints the registers and memory that the machine code uses. Exit
// status: 0 if all compile to machine code without a warning, 1 if not, 2 if arguments are missing, 77 if there is no
// NVRTC or no kernel.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "backplane/sdk/fence.hpp"
#include "driver/nvrtc.h"

namespace {

struct Source {
  std::string options, text;
};

std::vector<Source> sources(const std::filesystem::path& folder) {
  std::vector<Source> all;
  if (!std::filesystem::is_directory(folder)) return all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t line = text.find('\n');
    if (line != std::string::npos) all.push_back({text.substr(0, line), text.substr(line + 1)});
  }
  return all;
}

struct Totals {
  std::mutex mutex;
  size_t failed = 0, kernels = 0, spilling = 0;
  int registers = 0, shared = 0, spilled = 0;
};

// The largest number that the pattern's first group matches in the log; 0 without a match.
int greatest(const std::string& log, const char* pattern) {
  int most = 0;
  const std::regex number(pattern);
  for (std::sregex_iterator at(log.begin(), log.end(), number), end; at != end; ++at)
    most = std::max(most, std::stoi((*at)[1]));
  return most;
}

void compile(const Source& source, const std::string& arch, Totals& totals) {
  std::string log, binary;
  const auto failure = backplane::sdk::caught([&] {
    // Disables warnings about unused code: each kernel uses only a part of the shared source text.
    const std::string options = source.options + " --ptxas-options=-v --diag-suppress=177,550";
    binary = backplane::cuda::compile(source.text, options, arch, &log);
  });
  const bool warns = log.find("warning") != std::string::npos;
  const bool empty = !failure && binary.find(".text.") == std::string::npos;
  const std::lock_guard lock(totals.mutex);
  if (failure || warns || empty) {
    ++totals.failed;
    std::printf("%s: '%s'\n%s\n", arch.c_str(), source.options.c_str(),
                failure ? failure->text.c_str()
                : empty ? "the binary has no kernel"
                        : log.c_str());
  }
  const int spilled = greatest(log, "([0-9]+) bytes spill stores");
  ++totals.kernels;
  totals.spilling += spilled > 0;
  totals.spilled = std::max(totals.spilled, spilled);
  totals.registers = std::max(totals.registers, greatest(log, "Used ([0-9]+) registers"));
  totals.shared = std::max(totals.shared, greatest(log, "([0-9]+) bytes smem"));
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int kSkipped = 77;
  if (count < 3) return std::puts("nvrtc_check FOLDER ARCH..."), 2;
  const std::vector<Source> all = sources(arguments[1]);
  if (all.empty()) return std::printf("skipped: %s has no kernels\n", arguments[1]), kSkipped;
  if (const auto none = backplane::sdk::caught([] { backplane::cuda::compile("", "", "sm_90"); });
      none && none->status == BP_UNSUPPORTED)
    return std::printf("skipped: %s\n", none->text.c_str()), kSkipped;
  bool good = true;
  for (int a = 2; a < count; ++a) {
    Totals totals;
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
      threads.emplace_back([&] {
        for (size_t i = next++; i < all.size(); i = next++) compile(all[i], arguments[a], totals);
      });
    for (std::thread& thread : threads) thread.join();
    std::printf(
        "%s: %zu sources, %zu failed; at most %d registers, %d bytes of shared memory; %zu spill, at most %d bytes\n",
        arguments[a], totals.kernels, totals.failed, totals.registers, totals.shared, totals.spilling, totals.spilled);
    good = good && totals.failed == 0;
  }
  return good ? 0 : 1;
}
