// SPDX-License-Identifier: Apache-2.0
#include "command_limits.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "cli/guarded.h"
#include "cli/usage.h"

namespace backplane::tools {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasShadowMemory = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kHasShadowMemory = true;
#else
constexpr bool kHasShadowMemory = false;
#endif
#else
constexpr bool kHasShadowMemory = false;
#endif

std::function<void(const std::string&)> g_print;
std::string g_memory;  // the value of --max-memory; empty: not given

double seconds_of(const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0) || seconds > 1e9)
    throw cli::Usage(fmt::format("--timeout is '{}': it must be a number of seconds, such as 60 or 0.5", text));
  return seconds;
}

uint64_t bytes_of(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string suffix(end, text.data() + text.size());
  int shift = 0;
  if (!suffix.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const size_t unit = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0]))));
    const std::string_view rest = std::string_view(suffix).substr(1);
    shift =
        unit == kUnits.npos || !(rest.empty() || rest == "B" || rest == "iB") ? -1 : 10 * (static_cast<int>(unit) + 1);
  }
  if (error != std::errc() || shift < 0 || number == 0 || number > UINT64_MAX >> shift)
    throw cli::Usage(fmt::format(
        "--max-memory is '{}': it must be a number of bytes, such as 512M or 4G (units of 1024, not 1000)", text));
  return number << shift;
}

// Kills the process groups that this command has started: those of isolated backends and of the probe, including
// processes that plugins have started in them. Otherwise, the kernel would kill only the leaders of the groups.
void kill_started_groups() {
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;)
      if (child > 1 && getpgid(child) == child) kill(-child, SIGKILL);
  }
}

// Waits in a separate thread, because the main thread may be in an endless loop in a backend. The thread blocks all
// signals.
void stop_after(double seconds, const std::string& text) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([seconds, text] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    alarm(2);  // ends the process if printing blocks
    if (g_print) g_print(fmt::format("stopped: the command took longer than --timeout {}", text));
    std::fflush(stdout);
    kill_started_groups();
    _exit(cli::kNegative);
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void Limits::declare(cli::Command command) {
  command.add_option("--timeout", timeout, "Stops the command after this many seconds, with exit status 1")
      .shown_as("SECONDS");
  command
      .add_option("--max-memory", memory,
                  "Memory that the command may allocate, such as 4G; mapped weights do not count. Exit status 1 if it "
                  "needs more")
      .shown_as("BYTES");
}

void Limits::start() const {
  if (!memory.empty()) {
    const uint64_t bytes = bytes_of(memory);
    g_memory = memory;
    // Limits private writable memory, so mapped models do not count. A sanitizer's shadow memory would count, and takes
    // terabytes.
    if (kHasShadowMemory) return start_clock();
    rlimit limit{};
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
    setrlimit(RLIMIT_DATA, &limit);
  }
  start_clock();
}

void Limits::start_clock() const {
  if (!timeout.empty()) stop_after(seconds_of(timeout), timeout);
}

void report_timeout_by(std::function<void(const std::string& text)> print) {
  g_print = std::move(print);
}

std::string no_memory_text() {
  return g_memory.empty() ? "no memory is left"
                          : fmt::format("the command needs more memory than --max-memory {}", g_memory);
}

}  // namespace backplane::tools
