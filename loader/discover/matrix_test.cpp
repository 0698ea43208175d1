// SPDX-License-Identifier: Apache-2.0
// Tries each fault of a plugin with the probe, without the probe (except kFatal faults), and with the backend
// isolated. The host survives, another backend still works, and the refusal is the expected one. Prints a table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <cstdio>
#include <string>
#include <string_view>

#include "discover/library.h"
#include "discover/process_state.h"
#include "discover/testing.h"
#include "testing/emulated.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

using testing::kFake;
using testing::kPlugins;
using testing::Request;
using testing::Sandbox;

// A value of Fault::in_process: the fault ends, blocks or damages the whole process, and no loader could prevent that.
constexpr uint32_t kFatal = UINT32_MAX;

struct Fault {
  const char* name;
  uint32_t probed;      // BP_REFUSED_* if the probe tries the plugin first
  uint32_t in_process;  // BP_REFUSED_* without the probe, or kFatal
  // Text expected with the probe, in the refusal or in the error of opening the device.
  const char* in_text = "";
};

constexpr Fault kFaults[] = {
    {"no_symbol", BP_REFUSED_SYMBOL, BP_REFUSED_SYMBOL, "does not export"},
    {"null_descriptor", BP_REFUSED_DESCRIPTOR, BP_REFUSED_DESCRIPTOR, "NULL"},
    {"small_descriptor", BP_REFUSED_DESCRIPTOR, BP_REFUSED_DESCRIPTOR, "size is 4"},
    {"small_table", BP_REFUSED_DESCRIPTOR, BP_REFUSED_DESCRIPTOR, "size is 16"},
    {"no_coverage", BP_REFUSED_DESCRIPTOR, BP_REFUSED_DESCRIPTOR, "coverage"},
    {"no_run", BP_REFUSED_DESCRIPTOR, BP_REFUSED_DESCRIPTOR, "instance.run"},
    {"no_create", BP_REFUSED_DESCRIPTOR, BP_REFUSED_DESCRIPTOR, "create"},
    {"version_new", BP_REFUSED_VERSION, BP_REFUSED_VERSION, "9.0"},
    {"long_id", BP_REFUSED_ID, BP_REFUSED_ID, "1 to 32"},
    {"undefined", BP_REFUSED_LINK, BP_REFUSED_LINK, "backplane_nobody_has_this"},
    {"crash_on_load", BP_REFUSED_CRASHED, kFatal, "crashed (SIGABRT) while it was loaded"},
    {"exit_on_load", BP_REFUSED_CRASHED, kFatal, "ended the process (exit code 0) while it was loaded"},
    {"forges_words", BP_REFUSED_CRASHED, kFatal, "wrote to a descriptor that is not its own"},
    {"forges_report", BP_REFUSED_CRASHED, kFatal, "wrote to a descriptor that is not its own"},
    {"crash_in_query", BP_REFUSED_CRASHED, kFatal, "while it was loaded and queried"},
    {"hang_in_query", BP_REFUSED_CRASHED, kFatal, "in time while it was loaded and queried"},
    {"throw_in_query", BP_REFUSED_DESCRIPTOR, BP_REFUSED_DESCRIPTOR, "thrown by a plugin"},
    {"crash_in_create", BP_REFUSED_CRASHED, kFatal, "while it was created"},
    {"exit_in_create", BP_REFUSED_CRASHED, kFatal, "exit code 0) while it was created"},
    {"hang_in_create", BP_REFUSED_CRASHED, kFatal, "in time while it was created"},
    {"throw_in_create", BP_REFUSED_CREATE, BP_REFUSED_CREATE, "thrown by a plugin"},
    {"create_fails", BP_REFUSED_CREATE, BP_REFUSED_CREATE, "refuses to start"},
    {"create_nothing", BP_REFUSED_CREATE, BP_REFUSED_CREATE, "BP_OK"},
    {"eats_stack", BP_REFUSED_CRASHED, kFatal, "crashed (SIGSEGV) while it was created"},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    {"eats_memory", BP_REFUSED_CRASHED, kFatal, "crashed (SIGABRT) while it was created"},
#endif
    {"kills_itself", BP_REFUSED_CRASHED, kFatal, "crashed (SIGKILL) while it was created"},
    {"is_terminated", BP_REFUSED_CRASHED, kFatal, "crashed (SIGTERM) while it was created"},
    {"closes_descriptors", BP_REFUSED_CRASHED, kFatal, "closed a descriptor that is not its own"},
    {"writes_to_others", BP_REFUSED_CRASHED, kFatal, "wrote to a descriptor that is not its own"},
    {"changes_signals", BP_REFUSED_NONE, BP_REFUSED_NONE},
    {"changes_rounding", BP_REFUSED_NONE, BP_REFUSED_NONE},
    {"leaks_thread", BP_REFUSED_NONE, BP_REFUSED_NONE},
    {"crash_in_count", BP_REFUSED_CRASHED, kFatal, "while it described its devices"},
    {"throw_in_count", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "thrown by a plugin"},
    {"count_fails", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "BP_PERMISSION_DENIED"},
    {"many_devices", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "4000000000"},
    {"crash_in_info", BP_REFUSED_CRASHED, kFatal, "while it described its devices"},
    {"hang_in_info", BP_REFUSED_CRASHED, kFatal, "in time while it described its devices"},
    {"throw_in_info", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "thrown by a plugin"},
    {"info_fails", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "device 0"},
    {"long_name", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "9223372036854775807 bytes"},
    {"many_peers", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "4000000000 peers"},
    {"wrong_stride", BP_REFUSED_DEVICES, BP_REFUSED_DEVICES, "property_stride is 4000000000"},
    {"crash_in_open", BP_REFUSED_CRASHED, kFatal, "while it opened a device"},
    {"hang_in_open", BP_REFUSED_CRASHED, kFatal, "in time while it opened a device"},
    {"throw_in_open", BP_REFUSED_NONE, BP_REFUSED_NONE, "thrown by a plugin"},
    {"open_nothing", BP_REFUSED_NONE, BP_REFUSED_NONE, "opened nothing"},
    {"throw_in_opsets", BP_REFUSED_NONE, BP_REFUSED_NONE, "thrown by a plugin"},
    {"many_opsets", BP_REFUSED_NONE, BP_REFUSED_NONE, "4000000000 operator sets"},
    {"no_opset_stride", BP_REFUSED_NONE, BP_REFUSED_NONE, "1 operator sets of 0 bytes"},
    {"crash_in_coverage", BP_REFUSED_CRASHED, BP_REFUSED_NONE, "while it was queried about an operator"},
    {"hang_in_coverage", BP_REFUSED_CRASHED, BP_REFUSED_NONE, "in time while it was queried about an operator"},
    {"throw_in_coverage", BP_REFUSED_NONE, BP_REFUSED_NONE},
    {"crash_in_close", BP_REFUSED_CRASHED, kFatal, "while it closed a device"},
    {"throw_in_close", BP_REFUSED_NONE, BP_REFUSED_NONE},
    {"crash_in_destroy", BP_REFUSED_CRASHED, kFatal, "while it was destroyed"},
    {"throw_in_destroy", BP_REFUSED_NONE, BP_REFUSED_NONE},
    {"crash_at_exit", BP_REFUSED_CRASHED, kFatal, "crashed (SIGABRT) while it ended"},
    {"crash_in_handler", BP_REFUSED_CRASHED, kFatal, "crashed (SIGABRT) while it ended"},
    {"hang_at_exit", BP_REFUSED_CRASHED, kFatal, "in time while it ended"},
    {"ends_at_exit", BP_REFUSED_CRASHED, kFatal, "ended the process (exit code 0) while it ended"},
    {"executable_stack", BP_REFUSED_UNTRUSTED, BP_REFUSED_UNTRUSTED, "its PT_GNU_STACK has the flag PF_X"},
    {"opens_stack", BP_REFUSED_CRASHED, kFatal, "changed the stack of its process, which became executable, while"},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer needs memory at any time
    {"lowers_limit", BP_REFUSED_CRASHED, BP_REFUSED_NONE, "changed the resource limit RLIMIT_AS of its process while"},
#endif
    {"sets_alarm", BP_REFUSED_CRASHED, BP_REFUSED_NONE, "changed a timer of its process (alarm or setitimer) while"},
    {"changes_umask", BP_REFUSED_CRASHED, BP_REFUSED_NONE, "changed the umask of its process while it was created"},
    {"changes_folder", BP_REFUSED_CRASHED, BP_REFUSED_NONE, "changed the working folder of its process while"},
    {"ignores_children", BP_REFUSED_CRASHED, BP_REFUSED_NONE, "changed how its process handles SIGCHLD while"},
};

struct Cell {
  bool lived = false;  // the host and the other backend still work
  uint32_t refusal = 0;
  char text[300] = {};  // of the refusal; if there is none, of the error of opening the device
};

// Loads a faulty plugin next to a good one, and returns its refusal and whether everything else still works.
Cell look(const Fault& fault, const char* policy, const char* isolate) {
  Cell cell;
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  const ProcessState state;
  std::string text;
  {
    auto env = Request()
                   .only_given()
                   .file(kPlugins / ("bad_" + std::string(fault.name) + ".so"))
                   .file(kFake)
                   .option("loader.probe", policy)
                   .option("loader.isolate", isolate)
                   .create();
    if (!env.ok()) return cell;
    const auto candidates = (*env)->candidates();
    cell.refusal = candidates[0].refusal;
    if (cell.refusal != BP_REFUSED_NONE) text = candidates[0].text;
    for (const auto& device : (*env)->devices()) {
      const auto opened = device->open();
      if (device->name() == "bad" && !opened.ok()) text = opened.status().text();
      if (device->name() == "fake") cell.lived = opened.ok();
    }
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal)
    cell.lived = cell.lived && sigismember(&before, signal) == sigismember(&after, signal);
  cell.lived = cell.lived && std::fegetround() == FE_TONEAREST && state.changed() == kUnchanged;
  std::snprintf(cell.text, sizeof cell.text, "%s", text.c_str());
  return cell;
}

// Calls `look` in a child process, because it may crash.
Cell look_apart(const Fault& fault, const char* policy, const char* isolate) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    alarm(60);
    const Cell cell = look(fault, policy, isolate);
    _exit(::write(ends[1], &cell, sizeof cell) == sizeof cell ? 0 : 1);
  }
  ::close(ends[1]);
  Cell cell;
  if (::read(ends[0], &cell, sizeof cell) != sizeof cell) cell = {};
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return cell;
}

// Calls `look_apart` with a time limit, which a fault that hangs always reaches. A busy machine may need more than the
// shortest limit to start the plugin and reach the fault: if an earlier call of the plugin ran out of time, the trial
// is repeated with more.
Cell look_in_time(Sandbox& sandbox, const Fault& fault, const char* policy, const char* isolate, uint32_t refusal,
                  std::string_view in_text) {
  const bool hangs = std::string_view(fault.name).starts_with("hang");
  const auto has = [](const Cell& cell, std::string_view text) {
    return std::string_view(cell.text).find(text) != text.npos;
  };
  Cell cell;
  for (const char* limit : {"1000", "4000", "16000"}) {
    sandbox.set("BACKPLANE_SCAN_TIMEOUT_MS", hangs ? limit : "20000");
    cell = look_apart(fault, policy, isolate);
    if (!hangs || !has(cell, "in time") || (cell.lived && cell.refusal == refusal && has(cell, in_text))) break;
  }
  return cell;
}

std::string shown(uint32_t refusal) {
  constexpr const char* kNames[] = {"taken",     "missing", "manifest",   "not a library", "architecture",
                                    "link",      "symbol",  "descriptor", "version",       "sanitizer",
                                    "by plugin", "id",      "duplicate",  "disabled",      "crashed",
                                    "create",    "devices", "untrusted",  "untried"};
  return refusal == kFatal ? "-" : refusal < std::size(kNames) ? kNames[refusal] : "?";
}

// The expected refusal if the backend runs in its own process. BP_REFUSED_NONE if the fault occurs after discovery.
uint32_t isolated(const Fault& fault) {
  if (fault.in_process != kFatal) return fault.in_process;
  const std::string_view name = fault.name;
  for (const char* early : {"_on_load", "_in_query"})
    if (name.ends_with(early)) return BP_REFUSED_CRASHED;
  if (name.starts_with("forges_")) return BP_REFUSED_CRASHED;
  for (const char* described : {"_in_count", "_in_info"})
    if (name.ends_with(described)) return BP_REFUSED_DEVICES;
  // The process of an isolated backend ends without exit handlers.
  for (const char* later : {"_in_open", "_in_close", "_in_destroy", "_at_exit", "_in_handler", "opens_stack"})
    if (name.ends_with(later)) return BP_REFUSED_NONE;
  return BP_REFUSED_CREATE;
}

// A sanitizer reports a stack overflow itself and then exits, so the text names no signal.
std::string_view expected(std::string_view text) {
  constexpr std::string_view kSegfault = "crashed (SIGSEGV) ";
  if (own_sanitizer() != BP_SANITIZER_NONE && text.starts_with(kSegfault)) text.remove_prefix(kSegfault.size());
  return text;
}

TEST(Matrix, EveryFaultIsSurvivedAndNamed) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator does not limit memory";
  Sandbox sandbox;
  // Stores the verdict on kFake before the time limit is reduced.
  ASSERT_TRUE(Request().only_given().file(kFake).create().ok());
  std::printf("%-20s %-11s %-11s %-11s %s\n", "fault", "probe", "in process", "isolated", "reason");
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    const Cell probed = look_in_time(sandbox, fault, "always", "", fault.probed, fault.in_text);
    EXPECT_TRUE(probed.lived) << "the host, the other backend, the state of the process or the thread";
    EXPECT_EQ(shown(probed.refusal), shown(fault.probed)) << probed.text;
    EXPECT_THAT(std::string(probed.text), ::testing::HasSubstr(expected(fault.in_text)));
    if (fault.in_process != kFatal) {
      const Cell inside = look_apart(fault, "never", "");
      EXPECT_TRUE(inside.lived);
      EXPECT_EQ(shown(inside.refusal), shown(fault.in_process)) << inside.text;
    }
    const Cell apart = look_in_time(sandbox, fault, "never", "bad*", isolated(fault), "");
    EXPECT_TRUE(apart.lived) << "isolated: the host, the other backend, the state of the process or the thread";
    EXPECT_EQ(shown(apart.refusal), shown(isolated(fault))) << apart.text;
    if (fault.in_process == fault.probed) {
      EXPECT_THAT(std::string(apart.text), ::testing::HasSubstr(expected(fault.in_text)));
    }
    const std::string text = probed.text;
    const size_t name = text.rfind(".so");
    std::printf("%-20s %-11s %-11s %-11s %.80s\n", fault.name, shown(probed.refusal).c_str(),
                shown(fault.in_process).c_str(), shown(apart.refusal).c_str(),
                text.c_str() + (name == text.npos ? 0 : name + 3));
  }
  static_assert(std::size(kFaults) >= 50);
}

}  // namespace
}  // namespace backplane
