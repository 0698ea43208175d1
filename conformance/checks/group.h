// SPDX-License-Identifier: Apache-2.0
// The groups of cases that call the plugin through the C ABI, without the loader.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases/cases.h"
#include "cases/model.h"
#include "checks/case.h"
#include "host/program.h"
#include "journal/result.h"

namespace backplane::conform {

// State shared by the cases of one process. The plugin is loaded when a case first needs it. [one at a time]
class Bench {
 public:
  Bench(std::filesystem::path plugin, uint32_t device, uint64_t seed)
      : plugin_(std::move(plugin)), device_index_(device), seed_(seed) {}

  const std::filesystem::path& plugin() const { return plugin_; }
  uint32_t device_index() const { return device_index_; }
  uint64_t seed() const { return seed_; }
  // Both library() and device() throw Breach if the plugin breaks the contract.
  const Library& library();
  Host& host() { return host_; }
  const Device& device();

 private:
  std::filesystem::path plugin_;
  uint32_t device_index_;
  uint64_t seed_;
  Host host_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
};

struct Selection {
  bool full = false;
  std::vector<ModelFile> models = {};  // files from which graphs are cut
};
using AddCases = void (*)(const Selection& selection, std::vector<Case>& out_cases);

void add_abi(const Selection& selection, std::vector<Case>& out_cases);
void add_coverage(const Selection& selection, std::vector<Case>& out_cases);
void add_ops(const Selection& selection, std::vector<Case>& out_cases);
void add_graph(const Selection& selection, std::vector<Case>& out_cases);
void add_models(const Selection& selection, std::vector<Case>& out_cases);
void add_handwritten(const Selection& selection, std::vector<Case>& out_cases);
void add_negative(const Selection& selection, std::vector<Case>& out_cases);
void add_programs(const Selection& selection, std::vector<Case>& out_cases);
void add_containers(const Selection& selection, std::vector<Case>& out_cases);
void add_memory(const Selection& selection, std::vector<Case>& out_cases);
void add_sync(const Selection& selection, std::vector<Case>& out_cases);
void add_cache(const Selection& selection, std::vector<Case>& out_cases);
void add_weights(const Selection& selection, std::vector<Case>& out_cases);
void add_performance(const Selection& selection, std::vector<Case>& out_cases);
void add_robustness(const Selection& selection, std::vector<Case>& out_cases);
void add_concurrency(const Selection& selection, std::vector<Case>& out_cases);
void add_lifecycle(const Selection& selection, std::vector<Case>& out_cases);
void add_determinism(const Selection& selection, std::vector<Case>& out_cases);

// The cases of all groups, in the order in which they run.
std::vector<Case> all_cases(const Selection& selection);

// Shorthands for the results of a case.
Result passed(uint32_t nodes = 0);
Result failed(std::string reason);
Result not_supported(std::string reason);

// A problem whose graph the device claims, ready to compile, run and judge.
struct Subject {
  Problem problem;
  References references;
  std::unique_ptr<Graph> graph;
  std::vector<onnx::Tensor> inputs;
  bool flushes = false;  // the device declares that it flushes subnormals

  Judgement judge(const std::vector<onnx::Tensor>& outputs) const {
    return judge_all(problem, references, outputs, flushes);
  }
  // Why the outputs are wrong; empty if they are right.
  std::string fault(const std::vector<onnx::Tensor>& outputs) const { return judge(outputs).reason; }
};
// NULL, with the reason in `out_result`, if the device does not claim the problem's graph or coverage fails.
std::unique_ptr<Subject> make_subject(const Device& device, Problem problem, Result& out_result);
// The problem of the operator case with this name, its inputs drawn from the random sequence named `stream`. Throws
// std::invalid_argument if there is no such case.
Problem problem_of(std::string_view op_case, uint64_t seed, std::string_view stream);
// The first of a few ordinary operator cases that the device claims; NULL if it claims none.
std::unique_ptr<Subject> any_subject(Bench& bench, Result& out_result);

}  // namespace backplane::conform
