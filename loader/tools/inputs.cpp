// SPDX-License-Identifier: Apache-2.0
#include "inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "convert.h"
#include "random_tensor.h"
#include "tensor_file.h"
#include "value_memory.h"

namespace backplane::tools {

std::map<std::string, int64_t> read_extents(view::Graph graph, const std::vector<std::string>& settings) {
  std::set<std::string> names;
  for (const view::Value& input : graph.inputs()) {
    for (uint32_t i = 0; input.is_tensor() && i < static_cast<uint32_t>(std::max(input.rank(), 0)); ++i) {
      if (!input.symbol(i).empty()) names.emplace(input.symbol(i));
    }
  }
  std::map<std::string, int64_t> extents;
  for (const std::string& setting : settings) {
    const auto [name, text] = split_setting("--dim", "NAME=EXTENT", setting, false);
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || end != text.data() + text.size() || extent < 0) {
      throw Usage(fmt::format("--dim {} is '{}': it must be a whole number, at least 0", name, text));
    }
    if (!names.contains(name)) {
      throw Usage(fmt::format("the model's inputs have no dimension '{}'; they have: {}", name,
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    }
    if (!extents.emplace(name, extent).second) throw Usage(fmt::format("--dim {} is given more than once", name));
  }
  return extents;
}

namespace {

// The extents of the model's named dimensions in this run.
class Dimensions {
 public:
  Dimensions(view::Graph graph, const std::vector<std::string>& settings) : extents_(read_extents(graph, settings)) {}

  // Checks a tensor against the declaration of its input. The tensor determines the extents of named dimensions.
  void match(view::Value input, const onnx::Tensor& tensor, const std::string& source) {
    bool fits = tensor.dtype == input.dtype() &&
                (input.rank() < 0 || tensor.extents.size() == static_cast<size_t>(input.rank()));
    for (uint32_t i = 0; fits && input.rank() >= 0 && i < tensor.extents.size(); ++i) {
      const std::string symbol(input.symbol(i));
      if (input.extent(i) >= 0) {
        fits = input.extent(i) == tensor.extents[i];
      } else if (!symbol.empty()) {
        const auto [known, is_new] = extents_.emplace(symbol, tensor.extents[i]);
        if (known->second != tensor.extents[i]) {
          throw Usage(fmt::format("input '{}' has {} for dimension '{}', which is {} elsewhere", input.name(),
                                  tensor.extents[i], symbol, known->second));
        }
      }
    }
    if (!fits) {
      const bool other_type =
          tensor.dtype != input.dtype() && tensor.dtype != BP_DTYPE_STRING && input.dtype() != BP_DTYPE_STRING;
      throw Usage(fmt::format("input '{}' must be {}, but {} has {}{}", input.name(), type_text(input),
                              is_literal(source) ? "the value" : "the file", describe(tensor),
                              other_type ? "; --cast converts numbers" : ""));
    }
  }

  // Chooses the extents of an input for which no value was given.
  std::vector<int64_t> choose(view::Value input) {
    if (input.rank() < 0)
      throw Usage(fmt::format("input '{0}' has no declared shape: give it with --input {0}=FILE", input.name()));
    std::vector<int64_t> extents = input.extents();
    for (uint32_t i = 0; i < extents.size(); ++i) {
      if (extents[i] >= 0) continue;
      const std::string symbol(input.symbol(i));
      if (const auto known = extents_.find(symbol); !symbol.empty() && known != extents_.end()) {
        extents[i] = known->second;
        continue;
      }
      extents[i] = 1;
      if (symbol.empty()) {
        say(fmt::format(
            "dimension {} of input '{}' has no name and is set to 1; to choose another, pass the input with "
            "--input {}=FILE",
            i, input.name(), input.name()));
      } else {
        say(fmt::format("dimension '{0}' is set to 1; choose it with --dim {0}=EXTENT", symbol));
        extents_[symbol] = 1;
      }
    }
    return extents;
  }

  // To be called after the last input.
  void say_the_rest() const {
    if (said_ > kMostSaid) note(fmt::format("{} more dimensions are set to 1", said_ - kMostSaid));
  }

 private:
  static constexpr size_t kMostSaid = 20;

  void say(const std::string& choice) {
    if (++said_ <= kMostSaid) note(choice);
  }

  std::map<std::string, int64_t> extents_;
  size_t said_ = 0;  // the dimensions for which an extent was chosen
};

// Throws if random inputs would take too much memory, because a model may declare inputs of any size.
void expect_memory(view::Value input, const std::vector<int64_t>& extents, uint64_t& used) {
  const uint64_t most = most_value_bytes();
  // Random strings have one digit, but each std::string takes 32 bytes.
  const uint64_t bytes = input.dtype() == BP_DTYPE_STRING ? std::min(onnx::element_count(extents), UINT64_MAX / 64) * 32
                                                          : onnx::dense_bytes(input.dtype(), extents);
  if (bytes <= most && (used += bytes) <= most) return;
  throw Usage(
      fmt::format("random values for input '{0}' take {1}; with the inputs before it, that is more than half of this "
                  "machine's memory: give it with --input {0}=FILE, or set its dimensions with --dim",
                  input.name(), bytes_text(bytes)));
}

// Assigns the values from the command line to the inputs.
class Given {
 public:
  Given(view::Graph graph, const InputFlags& flags, std::vector<Input>& inputs, Dimensions& dimensions)
      : graph_(graph), flags_(flags), inputs_(inputs), dimensions_(dimensions) {}

  // Takes one --input: "NAME=FILE", "NAME=2x3xf32=1", or an archive with arrays named like inputs.
  void setting(const std::string& setting) {
    if (setting.ends_with(".npz") && setting.find('=') == std::string::npos) return archive(setting);
    const auto [name, source] = split_setting("--input", "NAME=FILE, NAME=VALUE or a .npz", setting, false);
    const uint32_t index = find(name);
    std::error_code error;
    if (source.empty() ||
        (!is_literal(source) && source.find('=') != std::string::npos && !std::filesystem::exists(source, error)))
      throw Usage(
          fmt::format("--input {}: '{}' is neither a file nor a value such as 2x3xf32=1,2,3,4,5,6", name, source));
    if (is_literal(source)) {
      try {
        place(index, source, {BP_KIND_TENSOR, parse_literal(source), {}, {}});
      } catch (const onnx::Malformed& error) {
        throw Usage(fmt::format("--input {}: {}", name, error.what()));
      }
    } else {
      place(index, source, read_value(source, graph_.input(index).type().kind, name));
    }
  }

  // Takes the file that follows the model on the command line: an archive, or the value of the only input without
  // --input.
  void array(const std::string& file) {
    if (file.ends_with(".npz")) return archive(file);
    uint32_t index = BP_NONE;
    std::vector<std::string> open;
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].value) continue;
      index = i;
      open.push_back(inputs_[i].name);
    }
    if (open.size() != 1) {
      throw Usage(open.empty() ? fmt::format("'{}' is not used: every input of the model has an --input", file)
                               : fmt::format("'{}' could be any of {} inputs, {}: write --input NAME={}", file,
                                             open.size(), fmt::join(open, ", "), file));
    }
    place(index, file, read_value(file, graph_.input(index).type().kind, inputs_[index].name));
  }

 private:
  uint32_t find(const std::string& name) const {
    const uint32_t index = graph_.find_input(name);
    if (index != BP_NONE) return index;
    std::vector<std::string> names;
    for (const Input& input : inputs_) names.push_back(input.name);
    throw Usage(fmt::format("the model has no input '{}'; it has: {}", name,
                            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }

  void archive(const std::string& file) {
    for (auto& [name, tensor] : read_arrays(file)) place(find(name), file, {BP_KIND_TENSOR, std::move(tensor), {}, {}});
  }

  void place(uint32_t index, const std::string& source, onnx::Value value) {
    const view::Value input = graph_.input(index);
    const std::string name(input.name());
    if (value.kind != input.type().kind) {
      throw Usage(fmt::format("input '{}' must be of kind {}, but the {} has kind {}", name,
                              onnx::kind_name(input.type().kind), is_literal(source) ? "value" : "file",
                              onnx::kind_name(value.kind)));
    }
    if (flags_.cast && input.is_tensor()) {
      try {
        value.tensor = convert(value.tensor, input.dtype());
      } catch (const onnx::Malformed& error) {
        throw Usage(fmt::format("input '{}': {}", name, error.what()));
      }
    }
    if (input.is_tensor()) dimensions_.match(input, value.tensor, source);
    if (inputs_[index].value)
      throw Usage(fmt::format("input '{}' is given twice: by '{}' and by '{}'", name, inputs_[index].source, source));
    inputs_[index].source = source;
    inputs_[index].value = std::make_shared<onnx::Value>(std::move(value));
  }

  view::Graph graph_;
  const InputFlags& flags_;
  std::vector<Input>& inputs_;
  Dimensions& dimensions_;
};

}  // namespace

void InputFlags::declare(cli::Command command) {
  command
      .add_option(
          "array", array,
          "A file with the value of the only input that has no --input, or a .npz with arrays of the inputs' names")
      .shown_as("FILE");
  command
      .add_option("--input", values,
                  "An input, as NAME=FILE with FILE a .npy, .npz or ONNX .pb, as NAME=2x3xf32=1,2,3,4,5,6 or with one "
                  "value for all elements; or a .npz with arrays of the inputs' names")
      .shown_as("NAME=FILE")
      .one_each();
  command.add_flag("--cast", cast, "Convert numbers, also those of --expect, to the type that the model declares");
  declare_dims(command, dims);
  command.add_option("--seed", seed, "The seed of the random numbers for inputs without a value");
}

std::vector<std::string> InputFlags::files() const {
  std::vector<std::string> names = {array};
  for (const std::string& value : values) {
    names.push_back(value);                              // FILE.npz
    names.push_back(value.substr(value.find('=') + 1));  // NAME=FILE
  }
  return names;
}

void declare_dims(cli::Command command, std::vector<std::string>& dims) {
  command.add_option("--dim", dims, "The extent of a named dimension, as batch=2").one_each().shown_as("NAME=EXTENT");
}

std::vector<Input> make_inputs(view::Graph graph, const InputFlags& flags) {
  std::vector<Input> inputs;
  for (const view::Value& input : graph.inputs()) inputs.push_back({std::string(input.name()), "", nullptr});
  Dimensions dimensions(graph, flags.dims);
  Given given(graph, flags, inputs, dimensions);
  for (const std::string& setting : flags.values) given.setting(setting);
  if (!flags.array.empty()) given.array(flags.array);
  std::mt19937_64 random(flags.seed);
  uint64_t used = 0;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value) continue;
    const view::Value input = graph.input(i);
    if (!input.is_tensor()) {
      throw Usage(fmt::format("input '{0}' is of kind {1}: give it with --input {0}=FILE.pb", input.name(),
                              onnx::kind_name(input.type().kind)));
    }
    try {
      std::vector<int64_t> extents = dimensions.choose(input);
      expect_memory(input, extents, used);
      inputs[i].value = std::make_shared<onnx::Value>(
          onnx::Value{BP_KIND_TENSOR, random_tensor(input.dtype(), std::move(extents), random), {}, {}});
    } catch (const onnx::Malformed& error) {
      throw Usage(fmt::format("input '{}': {}", input.name(), error.what()));
    }
  }
  dimensions.say_the_rest();
  return inputs;
}

void note_random(const std::vector<Input>& inputs, uint64_t seed) {
  constexpr size_t kMostNamed = 20;
  std::vector<std::string> names;
  for (const Input& input : inputs) {
    if (input.source.empty()) names.push_back(input.name);
  }
  if (names.empty()) return;
  const size_t more = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - more);
  note(fmt::format("input{} {}{}: random numbers, from --seed {}", names.size() == 1 ? "" : "s", fmt::join(names, ", "),
                   more == 0 ? "" : fmt::format(" and {} more", more), seed));
}

BoundExec bind_inputs(const Session& session, const std::vector<Input>& inputs) {
  BoundExec result{{}, session.exec()};
  for (uint32_t i = 0; i < inputs.size(); ++i)
    result.bound.push_back(onnx::bind_input(result.exec, i, inputs[i].value));
  return result;
}

}  // namespace backplane::tools
