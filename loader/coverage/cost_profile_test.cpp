// SPDX-License-Identifier: Apache-2.0
#include "coverage/cost_profile.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "discover/negotiate.h"
#include "host/host.h"

namespace backplane {
namespace {

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() : services_(std::make_shared<Services>(bp_env_desc_t{})) {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("profile_test." + std::to_string(::getpid()));
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    backend_.id = "fake";
    backend_.host = std::make_shared<Host>(services_, "fake", Host::Options{}, BP_ABI_VERSION);
    device_ = std::make_unique<Device>(backend_, 1, "fake", bp_device_info_t{}, 1);
  }
  ~ProfileTest() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  Profile open(const Host::Options& options = {}) { return Profile::of(*device_, options); }

  std::filesystem::path folder_;
  std::shared_ptr<Services> services_;
  Backend backend_;
  std::unique_ptr<Device> device_;
};

TEST_F(ProfileTest, IsMergedWithWhatOthersWrote) {
  Profile first = open(), second = open();
  first.set("a", 1e-3);
  first.set("b", 2e-3);
  second.set("b", 3e-3);
  EXPECT_TRUE(first.save());
  EXPECT_TRUE(second.save());
  const Profile kept = open();
  EXPECT_EQ(kept.find("a"), 1e-3);
  EXPECT_EQ(kept.find("b"), 3e-3);
  EXPECT_EQ(kept.find("c"), std::nullopt);
  EXPECT_TRUE(open({{"threads", "1"}}).empty());  // other options have another profile
}

TEST_F(ProfileTest, WithoutACacheFolderNothingIsKept) {
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  Profile profile = open();
  profile.set("a", 1e-3);
  EXPECT_FALSE(profile.save());
  EXPECT_EQ(profile.find("a"), 1e-3);
}

TEST_F(ProfileTest, DamagedFilesAreReadAsFarAsTheyMeanSomething) {
  Profile profile = open();
  for (int i = 0; i < 50; ++i) profile.set("key " + std::to_string(i), 1e-6 * (i + 1));
  ASSERT_TRUE(profile.save());
  std::stringstream whole;
  whole << std::ifstream(profile.path()).rdbuf();
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string text = whole.str();
    for (uint32_t k = 0; k < 1 + random() % 20; ++k) text[random() % text.size()] = static_cast<char>(random());
    text.resize(text.size() - random() % 100);
    std::ofstream(profile.path(), std::ios::binary) << text;
    for (int i = 0; i < 50; ++i) {
      const auto seconds = open().find("key " + std::to_string(i));
      ASSERT_TRUE(!seconds || (*seconds > 0 && *seconds < 3600)) << "round " << round;
    }
  }
  std::ofstream(profile.path()) << "backplane profile 2\n" << whole.str();
  EXPECT_TRUE(open().empty());
  // The next `save` replaces the file of the unknown version.
  EXPECT_TRUE(profile.save());
  EXPECT_EQ(open().find("key 7"), 8e-6);
}

TEST_F(ProfileTest, AFileThatOthersCanWriteIsNotRead) {
  Profile profile = open();
  profile.set("a", 1e-3);
  ASSERT_TRUE(profile.save());
  ASSERT_EQ(::chmod(profile.path().c_str(), 0666), 0);
  EXPECT_TRUE(open().empty());
}

TEST_F(ProfileTest, ImpossibleTimesAreSkipped) {
  Profile profile = open();
  profile.set("good", 1e-6);
  ASSERT_TRUE(profile.save());
  std::ofstream(profile.path(), std::ios::app) << "nan\tn\ninf\ti\n-1\tm\n0\tz\n1e-6 no tab\n\t\n1e-6\t";
  const Profile read = open();
  for (const char* key : {"n", "i", "m", "z", ""}) EXPECT_EQ(read.find(key), std::nullopt) << key;
  EXPECT_EQ(read.find("good"), 1e-6);
}

model::Graph two_inputs(const std::vector<bp_dim_t>& dims) {
  model::Graph graph;
  const model::Type type{
      .kind = BP_KIND_TENSOR, .dtype = BP_DTYPE_FLOAT, .rank = static_cast<int32_t>(dims.size()), .dims = dims};
  model::Node& node = graph.nodes.emplace_back();
  node.op_type = "Gemm";
  node.inputs = {graph.add_value("a", type), graph.add_value("b", type)};
  node.outputs = {graph.add_value("c", type)};
  return graph;
}

TEST(ProfileKey, DiffersWhereCostsDiffer) {
  const auto key = [](const model::Graph& graph, uint32_t compute_types = 0) {
    return profile_key(graph, graph.nodes[0], compute_types);
  };
  const model::Graph plain = two_inputs({{4, BP_NONE, 0}});
  model::Graph same = two_inputs({{4, BP_NONE, 0}});
  same.nodes[0].name = "another name";
  same.values[0].name = "x\ny";
  EXPECT_EQ(key(plain), key(same));
  EXPECT_NE(key(plain), key(two_inputs({{5, BP_NONE, 0}})));
  EXPECT_NE(key(plain), key(plain, BP_COMPUTE_TF32));
  model::Graph open = two_inputs({{-1, 0, 0}});
  open.symbols.emplace_back().expected = 4;
  EXPECT_NE(key(plain), key(open));
  const std::string expects_4 = key(open);
  open.symbols[0].expected = 4000;
  EXPECT_NE(key(open), expects_4);
  same.nodes[0].set(model::Attribute::of("transA", int64_t{1}));
  EXPECT_NE(key(plain), key(same));
  same = two_inputs({{4, BP_NONE, 0}});
  same.values[1].weight = 0;
  EXPECT_NE(key(plain), key(same));
  same = two_inputs({{4, BP_NONE, 0}});
  same.nodes[0].domain = "line\nbreak";
  EXPECT_EQ(key(same).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace backplane
