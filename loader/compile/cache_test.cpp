// SPDX-License-Identifier: Apache-2.0
// The cache of compiled programs, tested through the public API with testing/partial_backend, whose programs can be
// stored.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "backplane/client.hpp"
#include "testing/client_fixture.h"
#include "testing/onnx_writer.h"
#include "testing/partial.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgramCacheTest : public ::testing::Test {
 protected:
  ProgramCacheTest() {
    std::string folder = ::testing::TempDir() + "backplane_cache_XXXXXX";
    root_ = ::mkdtemp(folder.data());
    folder_ = root_ / "programs";
  }
  ~ProgramCacheTest() override {
    std::error_code error;
    fs::remove_all(root_, error);
  }

  Environment env(std::map<std::string, std::string> options = {}) const {
    options.insert({"partial.cache", "1"});
    options.insert({"loader.cache", folder_.string()});
    EnvironmentOptions how;
    how.backend_files = {kPartialFile};
    how.only_given = true;
    how.options = std::move(options);
    how.log = [](uint32_t, std::string_view) {};
    return Environment(how);
  }

  // y = -x + weight
  static Model model(float weight = 1) {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1});
    const uint32_t w = graph.weight("w", Tensor::of<float>({1}, {weight}));
    return graph.finish({graph.node("Add", "y", {graph.node("Neg", "n", {x}), w})});
  }

  // Runs the model, checks the result, and returns what the session's report says about the cache.
  static std::string story(const Environment& env, const Model& model, float expected = -1) {
    const Session session = env.compile(model);
    Exec exec = session.exec();
    exec.bind("x", Tensor::of<float>({1}, {2}));
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(expected));
    const std::string report = session.report();
    const size_t begin = report.find("\"cache\":");
    return begin == report.npos ? "" : report.substr(begin, report.find('}', begin) - begin);
  }

  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) found.push_back(entry.path());
    return found;
  }

  fs::path root_, folder_;
};

TEST_F(ProgramCacheTest, TheSecondStartCompilesNothing) {
  EXPECT_EQ(story(env(), model()), "\"cache\":\"stored\"");
  const Environment next = env();
  EXPECT_EQ(story(next, model()), "\"cache\":\"exact\"");
  EXPECT_EQ(counters(next).compiles, 0u);
  EXPECT_EQ(counters(next).deserializations, 1u);
}

TEST_F(ProgramCacheTest, TheKeyHasAllThatAffectsThePrograms) {
  EXPECT_EQ(story(env(), model()), "\"cache\":\"stored\"");
  EXPECT_EQ(story(env(), model(2), 0), "\"cache\":\"stored\"");                       // another weight
  EXPECT_EQ(story(env({{"partial.run_us", "1"}}), model()), "\"cache\":\"stored\"");  // another option
  EXPECT_EQ(entries().size(), 3u);
}

// `y = x + w`, with the 400 elements of w in the model's file; within a branch of an If, if `in_branch`.
std::string sum_in_file(float weight, bool in_branch) {
  using namespace backplane::testing::onnx;
  const std::string sum = node("Add", {"x", "w"}, {in_branch ? "t" : "y"});
  const Texts w{tensor("w", BP_DTYPE_FLOAT, {400}, std::vector<float>(400, weight))};
  const std::string x = tensor_value("x", BP_DTYPE_FLOAT, {400}), c = tensor_value("c", BP_DTYPE_BOOL, {});
  if (!in_branch) return model_bytes({{"", 17}}, graph({sum}, {x}, {value("y")}, w));
  const std::string other = graph({node("Neg", {"x"}, {"e"})}, {}, {value("e")});
  const std::string both =
      node("If", {"c"}, {"y"},
           {graph_attribute("then_branch", graph({sum}, {}, {value("t")}, w)), graph_attribute("else_branch", other)});
  return model_bytes({{"", 17}}, graph({both}, {x, c}, {value("y")}));
}

TEST_F(ProgramCacheTest, TheKeyDependsOnAFilesContentAndNotOnItsPath) {
  for (const bool in_branch : {false, true}) {
    const auto cached = [&](const char* name, float weight) {
      std::ofstream(root_ / name, std::ios::binary) << sum_in_file(weight, in_branch);
      const Environment here = env();
      const std::string report = here.compile(here.open((root_ / name).string())).report();
      const size_t begin = report.find("\"cache\":\"") + 9;
      return report.substr(begin, report.find('"', begin) - begin);
    };
    EXPECT_EQ(cached("one.onnx", 1), "stored");
    EXPECT_EQ(cached("one.onnx", 1), "exact");
    EXPECT_EQ(cached("copy.onnx", 1), "exact");
    EXPECT_EQ(cached("one.onnx", 2), "stored") << "in a branch: " << in_branch;
  }
}

// The key identifies the kind of device; the plugin decides whether a program fits one device only.
TEST_F(ProgramCacheTest, DevicesOfOneKindShareEntries) {
  const Environment both =
      env({{"partial.devices", "2"}, {"partial.0.uuid", "the first"}, {"partial.1.uuid", "the second"}});
  const Model same = model();
  for (const std::string device : {"partial:0", "partial:1"}) {
    SessionOptions how;
    how.devices = {device};
    EXPECT_THAT(both.compile(same, how).report(),
                HasSubstr(device == "partial:0" ? "\"cache\":\"stored\"" : "\"cache\":\"exact\""));
  }
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_EQ(counters(both, 0).compiles, 1u);
  EXPECT_EQ(counters(both, 1).deserializations, 1u);
}

TEST_F(ProgramCacheTest, ThePluginJudges) {
  EXPECT_EQ(story(env({{"partial.cache", "usable"}}), model()), "\"cache\":\"stored\"");
  EXPECT_EQ(story(env({{"partial.cache", "usable"}}), model()), "\"cache\":\"usable\"");
  EXPECT_EQ(story(env({{"partial.cache", "recompile"}}), model()), "\"cache\":\"stored\"");
  EXPECT_THAT(story(env({{"partial.cache", "recompile"}}), model()),
              HasSubstr("\"cache_reason\":\"it was compiled by version 1"));
}

TEST_F(ProgramCacheTest, DamagedEntriesAreCompiledAgain) {
  story(env(), model());
  ASSERT_EQ(entries().size(), 1u);
  const fs::path path = entries().front();
  std::string whole;
  {
    std::ifstream file(path, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::mt19937 random(7);
  const Environment here = env();
  const Model same = model();
  for (uint64_t i = 0; i < 200; ++i) {
    std::string damaged = whole;
    const size_t at = random() % damaged.size();
    switch (i % 4) {
      case 0:
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        break;
      case 1:
        damaged.resize(at);
        break;
      case 2:
        damaged += "more";
        break;
      default:
        for (char& byte : damaged) byte = static_cast<char>(random());
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    const std::string said = story(here, same);
    ASSERT_THAT(said, HasSubstr("\"cache\":\"stored\",\"cache_reason\"")) << i;
    ASSERT_THAT(said, AnyOf(HasSubstr("truncated"), HasSubstr("damaged"))) << i;
    ASSERT_EQ(counters(here).compiles, i + 1);
  }
  EXPECT_EQ(story(here, same), "\"cache\":\"exact\"");
}

TEST_F(ProgramCacheTest, EntriesThatOthersCanWriteAreCompiledAgain) {
  story(env(), model());
  ASSERT_EQ(entries().size(), 1u);
  ASSERT_EQ(::chmod(entries().front().c_str(), 0666), 0);
  EXPECT_THAT(story(env(), model()), AllOf(HasSubstr("\"cache\":\"stored\""), HasSubstr("it is world-writable")));
  EXPECT_EQ(story(env(), model()), "\"cache\":\"exact\"");
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  // Nothing is stored either, as it would be refused again.
  EXPECT_THAT(story(env(), model()), AllOf(HasSubstr("\"cache\":\"compiled\""), HasSubstr("it is world-writable")));
}

TEST_F(ProgramCacheTest, TheLeastRecentlyUsedAreEvicted) {
  const std::map<std::string, std::string> small = {{"loader.cache_bytes", "10000"}};  // two entries take about 8.4 KB
  story(env(small), model(1), -1);
  story(env(small), model(2), 0);
  EXPECT_EQ(story(env(small), model(1), -1),
            "\"cache\":\"exact\"");  // now the entry of model 2 is the least recently used
  story(env(small), model(3), 1);
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_EQ(story(env(small), model(1), -1), "\"cache\":\"exact\"");
  EXPECT_EQ(story(env(small), model(2), 0), "\"cache\":\"stored\"");
}

TEST_F(ProgramCacheTest, AReadOnlyFolderIsNotAnError) {
  std::ofstream(folder_) << "a file where the folder should be";
  EXPECT_EQ(story(env(), model()), "\"cache\":\"compiled\"");
}

TEST_F(ProgramCacheTest, AKilledCompileLeavesNoBrokenEntry) {
  namespace onnx = backplane::testing::onnx;
  const fs::path file = root_ / "model.onnx";
  std::ofstream(file, std::ios::binary) << onnx::model_bytes(
      {{"", 17}},
      onnx::graph({onnx::node("Neg", {"x"}, {"y"})}, {onnx::tensor_value("x", 1, {1})}, {onnx::value("y")}));
  const std::vector<std::string> words = {BACKPLANE_BUILD_DIR "/bin/backplane",
                                          "run",
                                          file.string(),
                                          "--backend",
                                          kPartialFile,
                                          "--device",
                                          "partial",
                                          "--set",
                                          "partial.cache=1",
                                          "--set",
                                          "partial.compile_us=3000",
                                          "--set",
                                          "loader.cache=" + folder_.string()};
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = [&] {
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, arguments[0], &quiet, nullptr, arguments.data(), environ), 0);
    return child;
  };
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  waitpid(start(), &status,
          0);  // not killed: measures how long a whole child takes and checks that it stores its program
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_EQ(entries().size(), 1u);
  const auto whole = std::chrono::steady_clock::now() - begin;
  std::mt19937 random(11);
  const Environment here = env({{"partial.compile_us", "3000"}});
  const Model same = here.open(file.string());
  int killed = 0;
  for (int i = 0; i < 20; ++i) {
    fs::remove_all(folder_);
    const pid_t child = start();
    std::this_thread::sleep_for(whole * (random() % 1000) / 1000);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    const Session session = here.compile(same);
    EXPECT_THAT(session.report(), Not(HasSubstr("cache_reason"))) << "kill " << i;
    EXPECT_THAT(session.report(), AnyOf(HasSubstr("\"cache\":\"stored\""), HasSubstr("\"cache\":\"exact\"")));
  }
  EXPECT_GT(killed, 0);
  posix_spawn_file_actions_destroy(&quiet);
}

}  // namespace
}  // namespace backplane
