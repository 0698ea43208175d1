// SPDX-License-Identifier: Apache-2.0
// Probing a plugin in a child process.
#include "discover/probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>

#include "base/abi.h"
#include "discover/child.h"
#include "discover/digest.h"
#include "discover/environment.h"
#include "discover/isolation.h"
#include "discover/known.h"
#include "discover/probe_report.h"
#include "discover/testing.h"
#include "discover/verdict.h"
#include "host/variable.h"
#include "testing/emulated.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::expect_refused;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFake;
using testing::kPlugins;
using testing::Request;
using testing::Sandbox;
using testing::tried;

// Probes a plugin in advance, so that its stored verdict is not affected by a short time limit that is set later.
void warm(const fs::path& library) {
  ASSERT_TRUE(Request().only_given().file(library).create().ok());
}

TEST(Probe, CrashesAreQuarantinedUntilTheContentChanges) {
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "x.so";
  fs::copy_file(kPlugins / "bad_crash_in_query.so", library);
  const auto refusal = [&](const char* policy) {
    const Candidate candidate = tried(library, policy);
    EXPECT_EQ(candidate.refusal, BP_REFUSED_CRASHED) << candidate.text;
    return candidate.text;
  };
  EXPECT_THAT(refusal("cached"), HasSubstr("ask its vendor"));
  EXPECT_THAT(refusal("cached"), HasSubstr("remove " + (sandbox.root() / "cache/backplane/probe").string()));
  EXPECT_THAT(refusal("always"), HasSubstr("ask its vendor"));
  fs::rename(library, sandbox.root() / "y.so");  // a verdict belongs to the content, not the name
  EXPECT_THAT(tried(sandbox.root() / "y.so", "cached").text, HasSubstr("quarantined"));
  fs::rename(sandbox.root() / "y.so", library);

  for (const auto& entry : fs::directory_iterator(sandbox.root() / "cache/backplane/probe"))
    std::ofstream(entry.path())
        << "backplane verdict 1\nscribbled\nsurvived\n";  // if this verdict were used, this process would crash
  EXPECT_THAT(refusal("cached"), HasSubstr("ask its vendor"));

  fs::remove(library);
  fs::copy_file(kFake, library);
  EXPECT_EQ(tried(library, "cached").refusal, BP_REFUSED_NONE);
}

TEST(Probe, HangsAndKillsAreQuarantinedToo) {
  Sandbox sandbox;
  warm(kFake);
  sandbox.set("BACKPLANE_SCAN_TIMEOUT_MS", "2000");  // enough for the helper to start
  for (const char* fault : {"bad_hang_in_query.so", "bad_kills_itself.so"}) {
    EXPECT_THAT(tried(kPlugins / fault, "cached").text, HasSubstr("ask its vendor"));
    EXPECT_THAT(tried(kPlugins / fault, "cached").text, HasSubstr("quarantined"));
  }
}

TEST(Probe, AVerdictThatOthersCanWriteIsNotRead) {
  const Sandbox sandbox;
  EXPECT_THAT(tried(kPlugins / "bad_crash_in_query.so", "cached").text, HasSubstr("ask its vendor"));
  for (const auto& entry : fs::directory_iterator(sandbox.root() / "cache/backplane/probe"))
    ::chmod(entry.path().c_str(), 0666);
  EXPECT_THAT(tried(kPlugins / "bad_crash_in_query.so", "cached").text, HasSubstr("ask its vendor"));
}

TEST(Probe, WhatThePluginStartsEndsWithTheTrial) {
  Sandbox sandbox;
  const fs::path lock = sandbox.root() / "lock";
  sandbox.set("BACKPLANE_TEST_LOCK", lock.string());
  const fs::path library = kPlugins / "bad_leaves_process.so";
  File opened;
  ASSERT_FALSE(opened.open(library));
  const Refusal refusal = probe_library(library, opened, "content", {}, Log(BP_LOG_ERROR, nullptr, nullptr));
  EXPECT_FALSE(refusal) << refusal.text;
  EXPECT_TRUE(fs::exists(lock));
  sandbox.set("BACKPLANE_TEST_LOCK", std::nullopt);
  const int file = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  bool is_free = false;
  for (int i = 0; !is_free && i < 100; ++i, ::usleep(20'000)) is_free = ::lockf(file, F_TLOCK, 0) == 0;
  EXPECT_TRUE(is_free) << "a process that the plugin started still holds " << lock;
  ::close(file);
}

TEST(Probe, SeesNoSecretsOfTheEnvironment) {
  Sandbox sandbox;
  sandbox.set("SECRET_TOKEN", "x");
  sandbox.set("CUDA_VISIBLE_DEVICES", "0");
  const auto passed = minimal_environment();
  EXPECT_THAT(passed, ::testing::Contains("CUDA_VISIBLE_DEVICES=0"));
  EXPECT_THAT(passed, ::testing::Not(::testing::Contains(HasSubstr("SECRET"))));
}

TEST(Probe, ElevatedPrivilegesPassNothingOfTheEnvironment) {
  Sandbox sandbox;
  sandbox.set("BACKPLANE_FAKE_PATH", "/somewhere");
  Isolation isolation;
  pretend_elevated(true);
  const auto passed = minimal_environment();
  isolation.allow_paths_of("fake", "");
  pretend_elevated(false);
  EXPECT_THAT(passed, IsEmpty());
  EXPECT_THAT(isolation.paths(), IsEmpty());
  isolation.allow_paths_of("fake", "");
  EXPECT_THAT(isolation.paths(), ElementsAre("/somewhere"));
}

TEST(Probe, WithoutAChildNothingIsLoadedUnlessAskedFor) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator does not report that a program cannot be started";
  const Sandbox sandbox;
  std::vector<std::string> lines;
  const Log log(
      BP_LOG_WARNING,
      [](void* self, uint32_t, bp_text_t text) {
        static_cast<std::vector<std::string>*>(self)->push_back(abi::string(text));
      },
      &lines);
  File file;
  ASSERT_FALSE(file.open(kFake));
  ProbeSettings settings;
  settings.helper = sandbox.root() / "nowhere";
  Refusal refusal = probe_library(kFake, file, "content", settings, log);
  EXPECT_EQ(refusal.code, BP_REFUSED_UNTRIED);
  EXPECT_THAT(refusal.text, HasSubstr("loader.probe=if_possible"));
  EXPECT_THAT(lines, IsEmpty());
  settings.policy = ProbePolicy::kIfPossible;
  EXPECT_FALSE(probe_library(kFake, file, "content", settings, log));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("loaded without a probe")));
}

std::optional<Verdict> stored_verdict(const fs::path& library) {
  File file;
  EXPECT_FALSE(file.open(library));
  return recall_verdict(blake2b_of(file).value_or(""));
}

TEST(Probe, AHelperThatFailsByItselfSaysNothingAboutThePlugin) {
  const Sandbox sandbox;
  File file;
  ASSERT_FALSE(file.open(kFake));
  ProbeSettings settings;
  settings.helper = "/bin/false";
  const Log silent(
      BP_LOG_ERROR, [](void*, uint32_t, bp_text_t) {}, nullptr);
  const Refusal refusal = probe_library(kFake, file, "content", settings, silent);
  EXPECT_EQ(refusal.code, BP_REFUSED_UNTRIED);
  EXPECT_THAT(refusal.text, HasSubstr("/bin/false ended the process (exit code 1) while it was started"));
  EXPECT_FALSE(recall_verdict("content"));
}

// The missing library may be installed later, and then the plugin has to be tried.
TEST(Probe, ALibraryThatCannotBeLoadedHasNoVerdict) {
  const Sandbox sandbox;
  const fs::path undefined = kPlugins / "bad_undefined.so", symbol = kPlugins / "bad_no_symbol.so";
  const Candidate refused = tried(undefined, "cached");
  EXPECT_EQ(refused.refusal, BP_REFUSED_LINK);
  EXPECT_THAT(refused.text,
              ::testing::AllOf(HasSubstr("backplane_nobody_has_this"), HasSubstr("if the framework has it")));
  EXPECT_FALSE(stored_verdict(undefined));
  EXPECT_EQ(tried(symbol, "cached").refusal, BP_REFUSED_SYMBOL);
  EXPECT_TRUE(stored_verdict(symbol));
}

// A plugin may have no devices because its driver is not installed yet, and may be faulty together with the driver.
TEST(Probe, APluginWithoutDevicesIsTriedAgainInAnotherSituation) {
  Sandbox sandbox;
  const fs::path none = kPlugins / "bad_no_devices.so";
  const auto trial = [&] {
    EXPECT_EQ(tried(none, "cached").refusal, BP_REFUSED_DEVICES);
    return stored_verdict(none).value_or(Verdict());
  };
  const Verdict first = trial();
  EXPECT_TRUE(first.survived);
  EXPECT_EQ(first.situation, situation({}));
  sandbox.set("CUDA_VISIBLE_DEVICES", "0");
  EXPECT_NE(first.situation, situation({}));
  EXPECT_EQ(trial().situation, situation({}));
  EXPECT_EQ(tried(kFake, "cached").refusal, BP_REFUSED_NONE);
  EXPECT_EQ(stored_verdict(kFake).value_or(Verdict()).situation, "");
}

TEST(Probe, APluginThatIsEndedFromOutsideIsTriedAgain) {
  const Sandbox sandbox;
  const Candidate candidate = tried(kPlugins / "bad_is_terminated.so", "cached");
  EXPECT_EQ(candidate.refusal, BP_REFUSED_CRASHED);
  EXPECT_THAT(candidate.text, HasSubstr("crashed (SIGTERM) while it was created"));
  EXPECT_FALSE(stored_verdict(kPlugins / "bad_is_terminated.so"));
}

TEST(ProbeReport, OnlyItsKeyAndOrderMakeItAuthentic) {
  const ProbeKey key = make_probe_key(), other = make_probe_key();
  const std::string loaded = probe_message(key, 0, ProbeStep::kLoaded), done = probe_message(key, 1, ProbeStep::kDone);
  EXPECT_EQ(read_probe_report(key, loaded + done).last, ProbeStep::kDone);
  EXPECT_FALSE(read_probe_report(key, loaded + done).disturbed);
  for (const std::string& forged :
       {done, loaded + loaded, probe_message(other, 0, ProbeStep::kDone), loaded + done.substr(0, 20),
        std::string(34, '\7'), loaded + "survived\n", loaded + done.substr(0, 1) + '\1' + done.substr(2)}) {
    const ProbeProgress progress = read_probe_report(key, forged);
    EXPECT_TRUE(progress.disturbed);
    EXPECT_NE(progress.last, ProbeStep::kDone);
  }
}

TEST(ProbeReport, TheReasonIsAuthenticToo) {
  const ProbeKey key = make_probe_key();
  const Refusal why{BP_REFUSED_LINK, "no symbol"};
  const std::string report = probe_message(key, 0, ProbeStep::kNotLoaded, kUnchanged, why);
  const ProbeProgress progress = read_probe_report(key, report);
  EXPECT_EQ(progress.last, ProbeStep::kNotLoaded);
  EXPECT_EQ(progress.reason.code, BP_REFUSED_LINK);
  EXPECT_EQ(progress.reason.text, "no symbol");
  for (size_t i = 0; i < report.size(); ++i) {
    std::string forged = report;
    ++forged[i];
    EXPECT_TRUE(read_probe_report(key, forged).disturbed) << i;
    EXPECT_TRUE(read_probe_report(key, report.substr(0, i)).last == ProbeStep::kNone) << i;
  }
}

TEST(Verdict, IsReadForItsContentOnly) {
  EXPECT_TRUE(parse_verdict("backplane verdict 1\nabc\nsurvived\n", "abc")->survived);
  EXPECT_EQ(parse_verdict("backplane verdict 1\nabc\nsurvived\n", "abc")->situation, "");
  EXPECT_EQ(parse_verdict("backplane verdict 1\nabc\nsurvived in here\n", "abc")->situation, "here");
  EXPECT_EQ(parse_verdict("backplane verdict 1\nabc\nquarantined: hung\n", "abc")->how, "hung");
  for (const char* text : {"", "backplane verdict 1\nabc\nsurvived", "backplane verdict 2\nabc\nsurvived\n",
                           "backplane verdict 1\nabd\nsurvived\n", "backplane verdict 1\nabc\nfine\n",
                           "backplane verdict 1\nabc\nsurvived\nmore\n"})
    EXPECT_FALSE(parse_verdict(text, "abc")) << text;
}

TEST(Probe, AFrameworkThatReapsAllChildrenIsNoObstacle) {
  const Sandbox sandbox;
  auto* before = ::signal(SIGCHLD, SIG_IGN);
  expect_refused(kPlugins / "bad_crash_on_load.so", BP_REFUSED_CRASHED, "while it was loaded");
  ::signal(SIGCHLD, before);
}

}  // namespace
}  // namespace backplane
