// SPDX-License-Identifier: Apache-2.0
// Tries each fault of an otherwise working backend with isolation, and without isolation in a child process. With
// isolation the host survives, another backend still computes, and the error is the expected one. Prints a table of the
// results. discover/matrix_test.cpp has the faults that occur during discovery.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "backplane/sdk/tables.hpp"
#include "testing/client_fixture.h"
#include "testing/emulated.h"
#include "testing/manifest_writer.h"

namespace backplane::fault_matrix {
namespace {

using ::testing::HasSubstr;

const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
const std::string kFault = BACKPLANE_BUILD_DIR "/tests/plugins/fault.so";
constexpr int kSurvived = 42;
constexpr const char* kVariable = "BACKPLANE_TEST_FAULT";

// The expected text of faults that do not always cause an error before the session is destroyed.
constexpr const char* kAny = "any";
// The thread sanitizer's allocator does not end a process that frees memory twice.
constexpr const char* kFreesTwice = sdk::kSanitizer == BP_SANITIZER_THREAD ? kAny : "crashed (SIGABRT) while it ran";

struct Fault {
  const char* name;
  const char* text;            // part of the first error with isolation; "": no error
  bool probe_refuses = false;  // the probe refuses the plugin
  bool survivable = false;     // a process survives the fault even without isolation
};

constexpr Fault kFaults[] = {
    {"crash_in_create", "crashed (SIGABRT) while it was created", true},
    {"throw_in_create", "thrown by a plugin", true, true},
    {"crash_in_count", "crashed (SIGABRT) while it described its devices", true},
    {"many_in_count", "4000000000 devices", true, true},
    {"crash_in_info", "crashed (SIGABRT) while it described its devices", true},
    {"many_in_info", "9223372036854775807 bytes", true, true},
    {"crash_in_open", "crashed (SIGABRT) while it opened a device", true},
    {"nothing_in_open", "opened nothing", false, true},
    {"throw_in_open", "thrown by a plugin", false, true},
    {"crash_in_coverage", "crashed (SIGABRT) while it was queried about operators", true},
    {"exit_in_coverage", "ended the process (exit code 0) while it was queried about operators", true},
    {"throw_in_coverage", "thrown by a plugin"},
    {"wrong_in_coverage", "", false, true},
    {"many_in_coverage", "4000000000 ranges", false, true},
    {"flood_in_coverage", "more than 64 MiB", false, true},
    {"null_in_coverage", "", false, true},
    {"forge_in_coverage", "sent a reply that cannot be read"},
    {"crash_in_review", "crashed (SIGABRT) while it reviewed an island"},
    {"throw_in_review", "thrown by a plugin"},
    {"wrong_in_review", "given back in review", false, true},
    {"crash_in_compile", "crashed (SIGABRT) while it compiled an island"},
    {"exit_in_compile", "ended the process (exit code 0) while it compiled an island"},
    {"kill_in_compile", "crashed (SIGKILL) while it compiled an island"},
    {"stack_in_compile", "crashed (SIGSEGV) while it compiled an island"},
    {"throw_in_compile", "thrown by a plugin"},
    {"nothing_in_compile", "without a program", false, true},
    {"crash_in_program_info", "crashed (SIGABRT) while it compiled an island"},
    {"many_in_program_info", "4000000000 inputs", false, true},
    {"wrong_in_program_info", "reports 4000000000 in-place pairs"},
    {"crash_in_extents", "crashed (SIGABRT) while it computed the extents of outputs"},
    {"many_in_extents", kAny},
    {"crash_in_instance", "crashed (SIGABRT) while it created an instance"},
    {"throw_in_instance", "thrown by a plugin"},
    {"nothing_in_instance", "without an instance"},
    {"crash_in_bind", "crashed (SIGABRT) while it bound memory"},
    {"throw_in_bind", "thrown by a plugin"},
    {"crash_in_run", "crashed (SIGABRT) while it ran"},
    {"exit_in_run", "ended the process (exit code 0) while it ran"},
    {"kill_in_run", "crashed (SIGKILL) while it ran"},
    {"stack_in_run", "crashed (SIGSEGV) while it ran"},
    {"throw_in_run", "thrown by a plugin"},
    {"hang_in_run", "did not return in time while it ran"},
    {"done_twice", ""},
    {"done_never", "did not return in time while it ran"},
    {"frees_twice", kFreesTwice},
    {"closes_descriptors", kAny},
    {"forge_in_run", kAny},
    {"writes_beyond", kAny},
    {"leaks_thread", "", false, true},
    {"blocks_signals", "", false, false},
    {"crash_in_destroy_instance", ""},
    {"crash_in_destroy_program", ""},
    {"crash_in_close", ""},
    {"crash_at_exit", "", true},
    {"hang_at_exit", "", true},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer needs memory at any time
    {"lowers_limit", "", true, true},
#endif
    {"sets_alarm", "", true, true},
    {"changes_umask", "", true, true},
    {"ignores_children", "", true, true},
};

// Opens the backend with `fault`, compiles a model and runs it. Returns the text of the first error, or an empty
// string.
std::string use(const std::string& fault, const std::string& isolate) {
  std::map<std::string, std::string> options = {
      {"fault.ops", "Neg"}, {"fault.what", fault}, {"loader.isolate", isolate}, {"loader.probe", "never"}};
  const Environment env = environment({kCpu, kFault}, options);
  const auto compute = [&](const std::string& device, const std::string& op) {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"});
    SessionOptions how;
    how.devices = {device};
    how.fallback = BP_FALLBACK_FORBID;
    Exec exec = env.compile(graph.finish({graph.node(op, "y", {x})}), how).exec();
    exec.bind("x", Tensor::of<float>({4}, {1, -2, 3, -4}));
    RunOptions run;
    run.timeout = std::chrono::seconds(device == "fault" ? 1 : 100);
    exec.run(run);
    return exec.output(0u).values<float>();
  };
  std::string text;
  for (const bp_candidate_t& candidate : env.candidates())
    if (candidate.refusal != BP_REFUSED_NONE) text.assign(candidate.text.data, candidate.text.size);
  if (text.empty()) text = failure([&] { compute("fault", "Neg"); }).text();
  if (text == "nothing was thrown") text.clear();
  EXPECT_EQ(compute("cpu", "Abs"), (std::vector<float>{1, 2, 3, 4})) << "of the other backend";
  return text;
}

// Uses `fault` without isolation in a child process, and returns what happens to that process: "survives", "dies" or
// "hangs".
std::string in_process(const std::string& fault) {
  ::setenv(kVariable, fault.c_str(), 1);
  char name[] = "/proc/self/exe", filter[] = "--gtest_filter=FaultMatrix.InThisProcess";
  char* const words[] = {name, filter, nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int number : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, number, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int failed = posix_spawn(&child, name, &files, &attributes, words, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  ::unsetenv(kVariable);
  if (failed) return "not tried";
  int status = 0;
  for (int i = 0; i < 500; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) && WEXITSTATUS(status) == kSurvived ? "survives" : "dies";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return "hangs";
}

TEST(FaultMatrix, InThisProcess) {
  const char* fault = std::getenv(kVariable);
  if (!fault) GTEST_SKIP() << "the other test starts this one";
  ::alarm(20);
  use(fault, "none");
  // Not 0, because a plugin that calls exit could also end the process with 0.
  const int code = HasFailure() ? 1 : kSurvived;
  if (std::string_view(fault).ends_with("_at_exit")) std::exit(code);
  std::_Exit(code);
}

// A sanitizer reports a stack overflow or a double free itself. How it ends the process then depends on whether the
// sandbox lets it start its symbolizer, so the text names no signal.
std::string_view expected(std::string_view text) {
  if (sdk::kSanitizer == BP_SANITIZER_NONE) return text;
  for (const std::string_view signal : {"crashed (SIGSEGV) ", "crashed (SIGABRT) "})
    if (text.starts_with(signal)) return text.substr(signal.size());
  return text;
}

TEST(FaultMatrix, TheHostLivesAndNamesEachFault) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  testing::Sandbox sandbox;
  sandbox.set("BACKPLANE_SCAN_TIMEOUT_MS", "5000");
  std::printf("%-26s %-8s %-11s %s\n", "fault", "probe", "in process", "isolated");
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    sigset_t before, after;
    pthread_sigmask(SIG_BLOCK, nullptr, &before);
    const std::string text = use(fault.name, "fault");
    pthread_sigmask(SIG_BLOCK, nullptr, &after);
    for (int signal = 1; signal < 32; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
    if (fault.text == kAny) {
    } else if (*fault.text) {
      EXPECT_THAT(text, HasSubstr(expected(fault.text)));
    } else {
      EXPECT_EQ(text, "");
    }
    const std::string inside = in_process(fault.name);
    if (fault.survivable) {
      EXPECT_EQ(inside, "survives");
    }
    const size_t cut = text.find(".so");
    std::printf("%-26s %-8s %-11s %.90s\n", fault.name, fault.probe_refuses ? "refuses" : "-", inside.c_str(),
                text.empty() ? "no error" : text.c_str() + (cut == text.npos ? 0 : cut + 3));
  }
  static_assert(std::size(kFaults) >= 30);
}

}  // namespace
}  // namespace backplane::fault_matrix
