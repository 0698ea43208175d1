// SPDX-License-Identifier: Apache-2.0
// Runs random graphs on random partial devices. Every placement must be legal, and the results must be bit for bit
// those of a single device. `random_graphs_test --graphs N` runs N graphs instead of a sample.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "backplane/client.hpp"

namespace backplane {
namespace {

int graphs = 200;

const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
const std::string kPartialFile = BACKPLANE_BUILD_DIR "/tests/plugins/partial.so";
constexpr int64_t kSide = 8;  // all values are [kSide, kSide], so that any operator can read any of them

// Values are integers, clipped to the range -64 to 64, so results are exact however a backend fuses operators.
constexpr int32_t kLargest = 64;

struct Operator {
  const char* name;
  int inputs;       // the number of values that it reads, without the indices of GatherElements
  bool weight;      // whether its last input is a weight
  bool grows;       // its results may exceed kLargest, so a Clip follows
  int outputs = 1;  // TopK has 2: values and indices
};
constexpr Operator kOperators[] = {
    {"Neg", 1, false, false},       {"Abs", 1, false, false},
    {"Relu", 1, false, false},      {"Sign", 1, false, false},
    {"Transpose", 1, false, false}, {"Max", 2, false, false},
    {"Min", 2, false, false},       {"Max", 3, false, false},
    {"Sum", 4, false, true},        {"Sub", 2, false, true},
    {"Add", 1, true, true},         {"Mul", 1, true, true},
    {"Mul", 2, false, true},        {"MatMul", 1, true, true},
    {"TopK", 1, false, false, 2},   {"GatherElements", 1, false, false},
};

// Builds a random graph.
class Drawing {
 public:
  Drawing(std::mt19937& random, uint32_t nodes) : random_(random) {
    for (const char* name : {"x", "y"}) values_.push_back(builder_.input(name, BP_DTYPE_FLOAT, {kSide, kSide}));
    for (int k = 0; k < 4; ++k) weights_.push_back(builder_.weight("w" + std::to_string(k), numbers(random, 4)));
    low_ = builder_.weight("low", Tensor::of<float>({}, {static_cast<float>(-kLargest)}));
    high_ = builder_.weight("high", Tensor::of<float>({}, {static_cast<float>(kLargest)}));
    k_ = builder_.weight("k", Tensor::of<int64_t>({1}, {kSide}));
    const size_t window = 1 + random() % 30;
    for (uint32_t i = 0; i < nodes; ++i) add_node("n" + std::to_string(i), window);
  }

  Model finish() {
    for (size_t k = 0; k < values_.size(); ++k)
      if (k + 1 == values_.size() || (k > 1 && random_() % 10 == 0)) builder_.output(values_[k]);
    return builder_.finish();
  }

  static Tensor numbers(std::mt19937& random, int32_t most) {
    std::vector<float> values(kSide * kSide);
    for (float& value : values)
      value = static_cast<float>(static_cast<int32_t>(random() % static_cast<uint32_t>(2 * most + 1)) - most);
    return Tensor::of<float>({kSide, kSide}, values);
  }

 private:
  void add_node(const std::string& name, size_t window) {
    const Operator& op = kOperators[random_() % std::size(kOperators)];
    const auto recent = [&](const std::vector<uint32_t>& list) {
      return list[list.size() - 1 - random_() % std::min(list.size(), window)];
    };
    std::vector<uint32_t> inputs;
    for (int k = 0; k < op.inputs; ++k) inputs.push_back(recent(values_));
    if (op.weight) inputs.push_back(weights_[random_() % weights_.size()]);
    const bool gathers = std::string_view(op.name) == "GatherElements";
    if (gathers && indices_.empty()) return;
    if (gathers) inputs.push_back(recent(indices_));
    if (op.outputs == 2) inputs.push_back(k_);
    const uint32_t made = make(op.name, name, inputs, op.outputs);
    values_.push_back(op.grows ? make("Clip", name + "_clipped", {made, low_, high_}, 1) : made);
    if (op.outputs == 2) indices_.push_back(made + 1);
  }

  // Adds a node; returns its first output.
  uint32_t make(const char* op, const std::string& name, const std::vector<uint32_t>& inputs, int outputs) {
    NodeOptions how;
    how.name = name;
    how.outputs = static_cast<uint32_t>(outputs);
    how.output_names = outputs == 2 ? std::vector{name, name + "_second"} : std::vector{name};
    return builder_.node(op, inputs, how);
  }

  std::mt19937& random_;
  Builder builder_{24};
  std::vector<uint32_t> values_, indices_, weights_;
  uint32_t k_ = 0, low_ = 0, high_ = 0;
};

// The first device supports every node; the others support those that their masks select. Some have memory of their own
// or import the host's, and some give nodes back in review. They may be asynchronous, wait for each other, and be
// peers.
Environment make_environment(std::mt19937& random, uint32_t devices) {
  EnvironmentOptions how;
  how.backend_files = {kCpu, kPartialFile};
  how.only_given = true;
  how.options = {{"loader.probe", "never"}, {"partial.devices", std::to_string(devices)}};
  how.threads = random() % 3;  // 0: one for each core
  for (const char* option : {"partial.async", "partial.marks", "partial.peers"})
    how.options[option] = std::to_string(random() % 2);
  for (uint32_t d = 0; d < devices; ++d) {
    const std::string device = "partial." + std::to_string(d) + ".";
    how.options[device + "seconds"] = "random:" + std::to_string(random());
    if (d > 0) how.options[device + "mask"] = std::to_string(random()) + ":" + std::to_string(10 + random() % 90);
    constexpr const char* kMemories[] = {"host", "own", "shared", "flushed"};
    how.options[device + "memory"] = kMemories[random() % std::size(kMemories)];
    if (d > 0 && random() % 4 == 0) how.options[device + "max_nodes"] = std::to_string(1 + random() % 8);
    if (d > 0 && random() % 4 == 0) how.options[device + "reject"] = kOperators[random() % std::size(kOperators)].name;
  }
  return Environment(how);
}

std::vector<Tensor> run(const Session& session, const Tensor& x, const Tensor& y) {
  Exec exec = session.exec();
  exec.bind("x", x);
  exec.bind("y", y);
  exec.run();
  std::vector<Tensor> outputs;
  for (uint32_t i = 0; i < session.model().graph().raw()->output_count; ++i) outputs.push_back(exec.output(i));
  return outputs;
}

bool are_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& one, const Tensor& other) {
    return one.extents() == other.extents() && one.values<float>() == other.values<float>();
  });
}

// Each of 16 threads runs the session twice with an exec of its own, which it then destroys: one run may be cancelled
// midway, the other is not. Returns the number of runs with wrong results or with an error; BP_CANCELLED does not count
// for runs that may be cancelled.
int faults_on_threads(const Session& session, const Tensor& x, const Tensor& y, const std::vector<Tensor>& expected) {
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (const bool cancels : {true, false}) {
        Cancel cancel;
        Exec exec = session.exec();
        exec.bind("x", x);
        exec.bind("y", y);
        RunOptions how;
        if (cancels) how.cancel = &cancel;
        const std::jthread canceller([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(50 << t % 8));
          if (cancels) cancel.set();
        });
        try {
          exec.run(how);
          std::vector<Tensor> outputs;
          for (uint32_t i = 0; i < expected.size(); ++i) outputs.push_back(exec.output(i));
          faults += !are_equal(outputs, expected);
        } catch (const Error& error) {
          faults += !cancels || error.status() != BP_CANCELLED;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  return faults;
}

// Islands run in the order of their numbers. They are convex and acyclic if no value is read by an earlier island than
// the one that writes it.
void expect_legal(const Session& session) {
  const bp_graph_t& graph = *session.model().graph().raw();
  std::vector<uint64_t> device_of;  // by island
  for (uint32_t i = 0; i < graph.node_count; ++i) {
    const bp_placed_node_t node = session.node(i);
    ASSERT_NE(node.island, BP_NONE);
    ASSERT_NE(node.device, 0u);
    if (device_of.size() <= node.island) device_of.resize(node.island + 1);
    if (device_of[node.island] == 0) device_of[node.island] = node.device;
    EXPECT_EQ(device_of[node.island], node.device) << "island " << node.island;
  }
  for (uint32_t v = 0; v < graph.value_count; ++v) {
    const bp_value_t& value = *bp_graph_value(&graph, v);
    if (value.producer == BP_NONE) continue;
    for (uint32_t u = value.first_use; u < value.first_use + value.use_count; ++u)
      EXPECT_LE(session.node(value.producer).island, session.node(graph.uses[u].node).island) << "value " << v;
  }
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(RandomGraphs, RunOnSeveralDevicesAsOnOne) {
  std::mt19937 random(2026);
  size_t islands = 0, nodes = 0, several = 0;
  for (int round = 0; round < graphs; ++round) {
    const uint32_t devices = 2 + random() % 3;
    const Environment env = make_environment(random, devices);
    const Model model = Drawing(random, 5 + random() % (round % 4 ? 46 : 196)).finish();
    const Tensor x = Drawing::numbers(random, kLargest), y = Drawing::numbers(random, kLargest);
    SessionOptions alone, together;
    alone.devices = {"cpu"};
    together.options["loader.costs"] = "reported";
    for (uint32_t d = 0; d < devices; ++d) together.devices.push_back("partial:" + std::to_string(d));
    const bp_graph_t& graph = *model.graph().raw();
    uint32_t pinned = BP_NONE;
    if (round % 3 == 0 && graph.node_count > 0) {
      pinned = random() % graph.node_count;
      const bp_text_t name = bp_graph_node(&graph, pinned)->name;
      together.pins["name=" + std::string(name.data, name.size)] = "partial:0";
    }
    const Session session = env.compile(model, together);
    expect_legal(session);
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph.node_count; ++i) count = std::max(count, session.node(i).island + 1);
    islands += count, nodes += graph.node_count, several += count > 1;
    if (pinned != BP_NONE) {
      EXPECT_EQ(env.device(session.node(pinned).device).name, "partial") << "the pin of node " << pinned;
    }

    const std::vector<Tensor> expected = run(env.compile(model, alone), x, y), got = run(session, x, y);
    ASSERT_EQ(expected.size(), got.size());
    for (size_t k = 0; k < got.size(); ++k) {
      const auto want = expected[k].values<float>(), have = got[k].values<float>();
      ASSERT_EQ(want.size(), have.size());
      const bp_value_t& value = *bp_graph_value(&graph, graph.outputs[k]);
      EXPECT_EQ(std::memcmp(want.data(), have.data(), want.size() * sizeof(float)), 0)
          << "output " << k << " of node " << value.producer << ", " << largest_difference(want, have) << " apart";
    }
    if (round % 4 == 0) {
      EXPECT_EQ(faults_on_threads(session, x, y, expected), 0) << "of 32 runs on 16 threads";
    }
    if (HasFailure()) FAIL() << "round " << round << ", nodes placed as in " << session.report();
  }
  std::printf("%d graphs, %zu nodes, %zu islands, %zu graphs of several islands\n", graphs, nodes, islands, several);
  EXPECT_GT(several, static_cast<size_t>(graphs) / 2);
}

}  // namespace
}  // namespace backplane

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string_view(argv[1]) == "--graphs") backplane::graphs = std::atoi(argv[2]);
  return RUN_ALL_TESTS();
}
