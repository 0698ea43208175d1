// SPDX-License-Identifier: Apache-2.0
#include "commands/onnx_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/whole_file.h"
#include "commands/statistics.h"
#include "onnx/exchange.h"
#include "onnx/number.h"
#include "onnx/wire.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;
using onnx::Malformed;
using onnx::Value;

// kGuard bytes after each output must stay untouched. They and the output are filled with kPoison before the first run.
// This byte is not a valid bool, and a number made of it is not a NaN in any type.
constexpr size_t kGuard = 64;
constexpr std::byte kPoison{0xcd};

constexpr uint64_t kMaxData = uint64_t{2} << 30;  // the most that a message of ONNX can have

std::string read_data(const fs::path& path) {
  try {
    return cli::read_file(path, kMaxData);
  } catch (const cli::FileError& error) {
    throw Malformed(error.what());
  }
}

// The files STEM_0.pb, STEM_1.pb, … up to the first missing number.
std::vector<fs::path> numbered_files(const fs::path& folder, const char* stem) {
  std::vector<fs::path> files;
  for (;;) {
    fs::path file = folder / fmt::format("{}_{}.pb", stem, files.size());
    if (!fs::exists(file)) return files;
    files.push_back(std::move(file));
  }
}

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  if (sets.empty()) throw Malformed(fmt::format("'{}' has no test_data_set_*", folder.string()));
  return sets;
}

// ONNX's test data up to 1.12 stores bfloat16 as uint16, with the same bits.
Value as_declared(Value value, const view::Value& declared) {
  const bool is_bfloat16 = declared.is_tensor() && declared.dtype() == BP_DTYPE_BFLOAT16;
  if (is_bfloat16 && value.tensor.dtype == BP_DTYPE_UINT16) value.tensor.dtype = BP_DTYPE_BFLOAT16;
  return value;
}

// Memory bound to an output: poisoned, with guard bytes after it.
struct GuardedOutput {
  bp_dtype_t dtype;
  std::vector<int64_t> extents;
  std::vector<std::byte> memory;

  bp_tensor_t as_abi() {
    bp_tensor_t tensor = {};
    tensor.size = sizeof tensor;
    tensor.dtype = dtype;
    tensor.rank = static_cast<uint32_t>(extents.size());
    tensor.extents = extents.data();
    tensor.buffer.address = memory.data();
    tensor.buffer.bytes = memory.size() - kGuard;
    return tensor;
  }
  void poison() { std::ranges::fill(memory, kPoison); }
  bool guard_is_whole() const {
    return std::all_of(memory.end() - kGuard, memory.end(), [](std::byte byte) { return byte == kPoison; });
  }
};

// nullopt for containers, strings, and outputs whose extents only a run determines.
std::optional<GuardedOutput> guarded_output(const view::Value& output) {
  if (!output.is_tensor() || !output.has_static_shape() || view::dtype_bits(output.dtype()) == 0) return std::nullopt;
  const uint64_t bytes = onnx::dense_bytes(output.dtype(), output.extents());
  return GuardedOutput{output.dtype(), output.extents(), std::vector<std::byte>(bytes + kGuard, kPoison)};
}

struct Run {
  const Environment& env;
  const Session& session;
  view::Graph graph;
  std::vector<std::shared_ptr<Value>> given;  // for each input of the graph; NULL if no file has it
  std::vector<onnx::Bound> inputs;
  std::vector<std::optional<GuardedOutput>> outputs;
  Exec exec;  // declared last, so that it is destroyed before the memory bound to it

  // Binds a file's tensor to the input with the tensor's name. If there is none, binds it to input `number`, because
  // files are numbered like inputs.
  void bind_input(uint32_t number, const fs::path& file) {
    uint32_t kind = number < graph.input_count() ? graph.input(number).type().kind : BP_KIND_TENSOR;
    std::string name;
    Value read = onnx::parse_value(read_data(file), kind, &name);
    const uint32_t named = graph.find_input(name);
    const uint32_t input = named == BP_NONE ? number : named;
    if (input >= graph.input_count()) {
      throw Error(BP_NOT_FOUND, fmt::format("the loaded model has no input for {}", file.filename().string()));
    }
    auto value = std::make_shared<Value>(as_declared(std::move(read), graph.input(input)));
    given.resize(graph.input_count());
    given[input] = value;
    inputs.push_back(onnx::bind_input(exec, input, std::move(value)));
  }

  void bind_outputs() {
    for (uint32_t i = 0; i < graph.output_count(); ++i) {
      outputs.push_back(guarded_output(graph.output(i)));
      if (!outputs[i]) continue;
      const bp_tensor_t tensor = outputs[i]->as_abi();
      client::detail::call(api().exec_bind, exec.get(), BP_SLOT_OUTPUT + i, &tensor);
    }
  }

  // Reads an output from the memory bound to it, if any, and not from the memory that the loader reports.
  Value output(uint32_t i) {
    if (!outputs[i]) return onnx::read_output(env, exec, graph, i);
    const bp_tensor_t reported = exec.output_view(i);
    bp_tensor_t seen = outputs[i]->as_abi();
    seen.dtype = reported.dtype;
    seen.rank = reported.rank;
    seen.extents = reported.extents;
    return {BP_KIND_TENSOR, onnx::Tensor::copy(seen), {}, {}};
  }
};

Result failed(std::string reason) {
  return {"", State::kFail, std::move(reason), 0, 0};
}

std::vector<Value> read_expected(const Run& run, const std::vector<fs::path>& files) {
  std::vector<Value> expected;
  for (uint32_t i = 0; i < files.size(); ++i) {
    const view::Value declared = run.graph.output(i);
    expected.push_back(as_declared(onnx::parse_value(read_data(files[i]), declared.type().kind), declared));
  }
  return expected;
}

// A Fourier transform sums N terms, where N is at most the largest extent. In the fp32 reference, each term has a
// rounding error of at most 2^-24·max|x|. The absolute part of the bound is therefore at least N·2^-24·max|x|.
Tolerance tolerance_for(const Run& run, Tolerance tolerance) {
  const std::vector<view::Node> nodes = run.graph.nodes();
  const bool transforms = std::any_of(nodes.begin(), nodes.end(), [](const view::Node& node) {
    return node.domain().empty() && (node.op_type() == "DFT" || node.op_type() == "STFT");
  });
  if (!transforms || run.given.empty() || run.given[0] == nullptr) return tolerance;
  if (!onnx::is_inexact(run.given[0]->tensor.dtype)) return tolerance;
  const onnx::Tensor& x = run.given[0]->tensor;
  double terms = 0, largest = 0;
  for (const int64_t extent : x.extents) terms = std::max(terms, static_cast<double>(extent));
  for (uint64_t i = 0; i < x.count(); ++i) largest = std::max(largest, std::abs(onnx::number_at(x, i)));
  if (std::isfinite(largest)) tolerance.absolute = std::max(tolerance.absolute, terms * std::ldexp(largest, -24));
  return tolerance;
}

// The comparison of the first wrong output, or kEqual if all outputs are right.
Comparison compare_outputs(Run& run, const std::vector<Value>& expected, const Tolerance& tolerance) {
  for (uint32_t i = 0; i < expected.size(); ++i) {
    Comparison comparison;
    try {
      comparison = compare(expected[i], run.output(i), tolerance);
    } catch (const Malformed& error) {
      comparison = {Comparison::kDifferent, error.what()};
    }
    if (comparison.answer == Comparison::kEqual) continue;
    comparison.reason = fmt::format("output {}: {}", i, comparison.reason);
    return comparison;
  }
  return {};
}

bool same_bytes(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Value& x, const Value& y) { return x.tensor.bytes == y.tensor.bytes; });
}

// For models with random results: compares types and shapes over several runs, and tests the values against their
// distribution.
Result run_draws(Run& run, Draws draws, const std::vector<Value>& expected) {
  constexpr int kRuns = 64;
  std::vector<Value> first;
  bool repeats = true;
  for (int i = 0; i < kRuns; ++i) {
    if (i > 0) {  // values left from the run before would look like those of a seeded generator
      for (std::optional<GuardedOutput>& output : run.outputs)
        if (output) output->poison();
      run.exec.run();
    }
    std::vector<Value> seen;
    for (uint32_t o = 0; o < expected.size(); ++o) {
      seen.push_back(run.output(o));
      const onnx::Tensor &a = expected[o].tensor, &b = seen[o].tensor;
      if (a.dtype != b.dtype || a.extents != b.extents)
        return failed(fmt::format("output {}: is {}, expected {}", o, describe(b), describe(a)));
    }
    repeats = repeats && (i == 0 || same_bytes(first, seen));
    // A seeded generator repeats its values in each run, so one run is enough.
    if (i == 1 && repeats && is_seeded(run.graph)) break;
    if (std::string wrong = draws.add(seen); !wrong.empty()) return failed(std::move(wrong));
    if (i == 0) first = std::move(seen);
  }
  if (std::string wrong = draws.fault(); !wrong.empty()) return failed(std::move(wrong));
  if (repeats && !is_seeded(run.graph) && draws.must_vary())
    return failed(fmt::format("{} runs drew the same values, although the model sets no seed", kRuns));
  Result result{"", State::kPass, "", 0, 0};
  result.is_statistical = true;
  return result;
}

Result run_data_set(Run run, const fs::path& folder, const Tolerance& tolerance) {
  const std::vector<fs::path> inputs = numbered_files(folder, "input");
  const std::vector<fs::path> outputs = numbered_files(folder, "output");
  if (outputs.empty()) throw Malformed(fmt::format("'{}' has no output_0.pb", folder.string()));
  if (outputs.size() > run.graph.output_count()) {
    return failed(
        fmt::format("outputs of the loaded model: {}, expected {}", run.graph.output_count(), outputs.size()));
  }
  for (uint32_t i = 0; i < inputs.size(); ++i) run.bind_input(i, inputs[i]);
  run.bind_outputs();
  run.exec.run();
  for (uint32_t i = 0; i < run.outputs.size(); ++i) {
    if (run.outputs[i] && !run.outputs[i]->guard_is_whole()) return failed(fmt::format("output {} was overrun", i));
  }
  const std::vector<Value> expected = read_expected(run, outputs);
  Comparison comparison = compare_outputs(run, expected, tolerance_for(run, tolerance));
  if (comparison.answer == Comparison::kEqual) return {"", State::kPass, "", 0, 0};
  std::vector<Value> given;
  for (const std::shared_ptr<Value>& value : run.given) given.push_back(value == nullptr ? Value() : *value);
  if (std::optional<Draws> draws = draws_of(run.graph, given)) return run_draws(run, *std::move(draws), expected);
  Result result = failed(std::move(comparison.reason));
  if (comparison.answer == Comparison::kMistrusted) result.state = State::kMistrusted;
  return result;
}

struct Placement {
  uint32_t here = 0;       // nodes that run on the device under test
  uint32_t elsewhere = 0;  // nodes that run on another device
};

Placement placement_of(const Session& session, uint64_t device) {
  Placement placement;
  for (uint32_t i = 0; i < session.model().graph().node_count(); ++i) {
    const bp_placed_node_t node = session.node(i);
    if (node.island == BP_NONE) continue;  // computed while the session was created
    ++(node.device == device ? placement.here : placement.elsewhere);
  }
  return placement;
}

}  // namespace

OnnxCases::OnnxCases(const Target& target)
    : env_([&] {
        EnvironmentOptions options;
        options.threads = target.threads;
        if (!target.plugin.empty()) {
          options.backend_files = {target.plugin};
          options.only_given = true;
        }
        return options;
      }()),
      device_(target.device) {
  std::string there;
  for (const Device& device : env_.devices()) {
    if (id_ == 0 && (device_.empty() || device.name == device_)) {
      id_ = device.info.id;
      device_ = device.name;
    }
    there += (there.empty() ? "" : ", ") + device.name;
  }
  if (id_ != 0) return;
  std::string text = target.device.empty() ? fmt::format("'{}' has no device", target.plugin)
                                           : fmt::format("there is no device '{}'", target.device);
  text += there.empty() ? "; no backend was accepted" : "; there is " + there;
  for (const bp_candidate_t& candidate : env_.candidates()) {
    if (candidate.refusal != BP_REFUSED_NONE) text += fmt::format("; {}", view::text(candidate.text));
  }
  throw Error(BP_NOT_FOUND, text);
}

fs::path OnnxCases::library() const {
  const std::string id = device_.substr(0, device_.find(':'));  // "opencl" for the device "opencl:1"
  for (const bp_candidate_t& candidate : env_.candidates())
    if (candidate.refusal == BP_REFUSED_NONE && view::text(candidate.id) == id) return view::text(candidate.library);
  return {};
}

Result OnnxCases::run(const fs::path& folder, const Tolerance& tolerance) const {
  const std::vector<fs::path> sets = data_sets(folder);
  SessionOptions options;
  options.devices = {device_};
  options.fallback = BP_FALLBACK_FORBID;
  Placement placement;
  bool is_made = false;
  try {
    const Session session = env_.compile(env_.open((folder / "model.onnx").string()), options);
    is_made = true;
    placement = placement_of(session, id_);
    if (placement.elsewhere > 0) {
      return failed(
          fmt::format("{} on another device, but fallback was forbidden",
                      placement.elsewhere == 1 ? "1 node is" : fmt::format("{} nodes are", placement.elsewhere)));
    }
    Result result;
    for (const fs::path& set : sets) {
      result = run_data_set({env_, session, session.model().graph(), {}, {}, {}, session.exec()}, set, tolerance);
      if (result.state == State::kPass) continue;
      if (sets.size() > 1) result.reason = fmt::format("{}: {}", set.filename().string(), result.reason);
      break;
    }
    result.nodes = placement.here;
    return result;
  } catch (const Error& error) {
    // A backend may refuse the model until the session is created. After that it has claimed the nodes.
    const bool refused = error.status() == BP_UNSUPPORTED && !is_made;
    return {"", refused ? State::kNotSupported : State::kFail,
            fmt::format("{}: {}", api().status_name(error.status()), error.text()), 0, placement.here};
  }
}

}  // namespace backplane::conform
