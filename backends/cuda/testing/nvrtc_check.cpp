// SPDX-License-Identifier: Apache-2.0
// nvrtc_check FOLDER ARCH…: compiles the kernels that a run on the stand-in left in FOLDER (testing/standin/nvrtc.cpp)
// with the real NVRTC, which needs no GPU, and prints the registers and memory that the machine code uses. Exit
// status: 0 if all compile to machine code without a warning and none spills more than kMostSpilled, 1 if not, 2 if
// arguments are missing, 77 if there is no NVRTC or no kernel.
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "backplane/sdk/fence.hpp"
#include "driver/nvrtc.h"

namespace {

constexpr int kMostSpilled = 64;  // bytes of a work item

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

// What the machine code of all kernels with one name, from any source, needs on one architecture.
struct Usage {
  size_t kernels = 0;
  int fewest = INT_MAX, most = 0;  // registers
  int shared = 0, spilled = 0;     // the most of any kernel, in bytes
};

struct Results {
  std::mutex mutex;
  size_t failed = 0;
  std::map<std::string, std::map<size_t, Usage>> usages;  // by kernel, by architecture
};

// The number that the pattern's first group matches in the text; 0 without a match.
int number_in(const std::string& text, const char* pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? std::stoi(match[1]) : 0;
}

// Adds what the compiler's log says about each kernel, from the line with its name on.
void add_usages(const std::string& log, size_t arch, Results& results) {
  const std::regex entry("Compiling entry function '([^']+)'");
  const std::sregex_iterator end;
  for (std::sregex_iterator at(log.begin(), log.end(), entry); at != end; ++at) {
    const auto next = std::next(at);
    const auto from = static_cast<size_t>(at->position());
    const std::string text = log.substr(from, next == end ? std::string::npos : next->position() - from);
    Usage& usage = results.usages[(*at)[1]][arch];
    const int registers = number_in(text, "Used ([0-9]+) registers");
    ++usage.kernels;
    usage.fewest = std::min(usage.fewest, registers);
    usage.most = std::max(usage.most, registers);
    usage.shared = std::max(usage.shared, number_in(text, "([0-9]+) bytes smem"));
    usage.spilled = std::max(usage.spilled, number_in(text, "([0-9]+) bytes spill stores"));
  }
}

void compile(const Source& source, const std::vector<std::string>& architectures, size_t arch, Results& results) {
  std::string log, binary;
  const auto failure = backplane::sdk::caught([&] {
    // Disables warnings about unused code: each kernel uses only a part of the shared source text.
    const std::string options = source.options + " --ptxas-options=-v --diag-suppress=177,550";
    binary = backplane::cuda::compile(source.text, options, architectures[arch], &log);
  });
  const bool warns = log.find("warning") != std::string::npos;
  const bool empty = !failure && binary.find(".text.") == std::string::npos;
  const std::lock_guard lock(results.mutex);
  add_usages(log, arch, results);
  if (!failure && !warns && !empty) return;
  ++results.failed;
  std::printf("%s: '%s'\n%s\n", architectures[arch].c_str(), source.options.c_str(),
              failure ? failure->text.c_str()
              : empty ? "the binary has no kernel"
                      : log.c_str());
}

// Prints a row for each kernel: how many there are, and on each architecture the registers of a work item, the bytes of
// shared memory of a group, and those that spill.
void print(const Results& results, const std::vector<std::string>& architectures) {
  std::printf("kernel (how many): registers / shared memory / spilled, on each architecture\n");
  for (const auto& [kernel, by_arch] : results.usages) {
    std::printf("%s (%zu):", kernel.c_str(), by_arch.begin()->second.kernels);
    for (const auto& [arch, usage] : by_arch) {
      std::printf("  %s %d", architectures[arch].c_str(), usage.fewest);
      if (usage.most != usage.fewest) std::printf("-%d", usage.most);
      std::printf(" / %d / %d", usage.shared, usage.spilled);
    }
    std::printf("\n");
  }
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
  const std::vector<std::string> architectures(arguments + 2, arguments + count);
  Results results;
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < all.size() * architectures.size(); i = next++)
        compile(all[i / architectures.size()], architectures, i % architectures.size(), results);
    });
  for (std::thread& thread : threads) thread.join();
  print(results, architectures);
  size_t spilling = 0;
  for (const auto& [kernel, by_arch] : results.usages)
    spilling += std::ranges::any_of(by_arch, [](const auto& one) { return one.second.spilled > kMostSpilled; });
  std::printf("%zu sources on %zu architectures: %zu failed, %zu kernels spill more than %d bytes\n", all.size(),
              architectures.size(), results.failed, spilling, kMostSpilled);
  return results.failed == 0 && spilling == 0 ? 0 : 1;
}
