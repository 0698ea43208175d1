// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "cli/overwrite.h"
#include "command.h"
#include "compare.h"
#include "convert.h"
#include "inputs.h"
#include "onnx/number.h"
#include "tensor_file.h"

namespace backplane::tools {
namespace {

constexpr uint64_t kFirst = 8;  // number of elements that are printed

struct Flags {
  SessionFlags session;
  InputFlags inputs;
  std::string output;
  std::vector<std::string> expected;  // NAME=FILE, or FILE
  Tolerance tolerance;
};

// JSON cannot represent NaN and infinity, so they become null.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

void summarize(const onnx::Tensor& tensor, Json& out) {
  out["dtype"] = view::dtype_name(tensor.dtype);
  out["extents"] = tensor.extents;
  const uint64_t count = tensor.count();
  out["first"] = Json::array();
  for (uint64_t i = 0; i < std::min(count, kFirst); ++i) out["first"].push_back(onnx::text_at(tensor, i));
  const bool is_ordered =
      tensor.dtype != BP_DTYPE_STRING && tensor.dtype != BP_DTYPE_COMPLEX64 && tensor.dtype != BP_DTYPE_COMPLEX128;
  if (!is_ordered || count == 0) return;
  double least = INFINITY, most = -INFINITY, sum = 0;
  uint64_t finite = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double value = onnx::number_at(tensor, i).real();
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
    ++finite;
  }
  out["min"] = number(least);
  out["max"] = number(most);
  out["mean"] = finite == 0 ? Json(nullptr) : number(sum / static_cast<double>(finite));
  out["not_finite"] = count - finite;
}

Json describe_output(const std::string& name, const onnx::Value& value) {
  Json out = {{"name", name}, {"kind", onnx::kind_name(value.kind)}};
  if (value.kind == BP_KIND_TENSOR) {
    summarize(value.tensor, out);
    return out;
  }
  out["elements"] = Json::array();
  for (size_t i = 0; i < value.elements.size(); ++i) {
    out["elements"].push_back(describe_output(fmt::format("{}.{}", name, i), value.elements[i]));
  }
  return out;
}

void render_output(const Json& output, std::string& text) {
  if (output.contains("elements")) {
    text += fmt::format("{}  {} of {} elements\n", cell(output.at("name")), cell(output.at("kind")),
                        output.at("elements").size());
    for (const Json& element : output.at("elements")) render_output(element, text);
    return;
  }
  text +=
      fmt::format("{}  {}[{}]\n", cell(output.at("name")), cell(output.at("dtype")), join(output.at("extents"), ","));
  if (output.contains("min") && output.at("min").is_number()) {
    text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", output.at("min").get<double>(),
                        output.at("max").get<double>(), output.at("mean").get<double>());
    if (output.at("not_finite") != 0) text += fmt::format("  not finite {}", cell(output.at("not_finite")));
    text += '\n';
  }
  if (!output.at("first").empty()) text += fmt::format("  {}\n", join(output.at("first"), "  "));
}

std::string render(const Json& report) {
  std::string text;
  for (const Json& output : report.at("outputs")) {
    render_output(output, text);
    if (!output.contains("files")) continue;
    for (const Json& file : output.at("files")) text += fmt::format("  written to {}\n", cell(file));
  }
  if (report.contains("expected")) {
    for (const Json& entry : report.at("expected"))
      text += fmt::format("{} {}: {}\n", cell(entry.at("name")),
                          entry.at("matches") ? "as expected" : "not as expected", cell(entry.at("text")));
  }
  const std::string devices = join(report.at("devices"), ", ");
  return text + fmt::format("{} in {} (compiled in {})\n",
                            devices.empty() ? "no device was needed: ran" : "ran on " + devices,
                            seconds_text(report.at("run_ms").get<double>() / 1e3),
                            seconds_text(report.at("create_ms").get<double>() / 1e3));
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Creates the folder for the outputs. Refuses NAME=FILE, which is the form of --input.
void create_folder(const std::string& folder) {
  std::error_code error;
  if (folder.find('=') != std::string::npos && !std::filesystem::is_directory(folder, error)) {
    throw Usage(
        fmt::format("--output is '{}': it takes a folder, to which each output is written as NAME.npy, and not "
                    "NAME=FILE; for example --output results",
                    folder));
  }
  std::filesystem::create_directories(folder, error);
  if (error) throw Failure(fmt::format("folder '{}' cannot be created: {}", folder, error.message()));
}

// Whether --output names an archive for all outputs.
bool is_archive(const std::string& output) {
  std::error_code error;
  return output.ends_with(".npz") && output.find('=') == std::string::npos &&
         !std::filesystem::is_directory(output, error);
}

// Compares each tensor of --expect with the output of the same name. Returns one entry for each.
Json compare_outputs(const std::map<std::string, onnx::Value>& outputs, const std::vector<std::string>& expected,
                     const Tolerance& tolerance, bool cast) {
  Json entries = Json::array();
  const auto add = [&](const std::string& name, const std::string& file, const onnx::Tensor* wanted) {
    const auto output = outputs.find(name);
    if (output == outputs.end()) {
      std::vector<std::string> names;
      for (const auto& [other, value] : outputs) names.push_back(other);
      throw Usage(fmt::format("--expect: the model has no output '{}'; it has: {}", name, fmt::join(names, ", ")));
    }
    if (output->second.kind != BP_KIND_TENSOR) throw Usage(fmt::format("--expect: output '{}' is not a tensor", name));
    onnx::Tensor read = wanted != nullptr ? *wanted : read_value(file, BP_KIND_TENSOR, name).tensor;
    if (cast) {
      try {
        read = convert(read, output->second.tensor.dtype);
      } catch (const onnx::Malformed& error) {
        throw Usage(fmt::format("--expect: output '{}': {}", name, error.what()));
      }
    }
    const Difference difference = compare(output->second.tensor, read, tolerance);
    Json entry = {{"name", name}, {"file", file}};
    entry.update(to_json(difference));
    entry["text"] = text(difference);
    entries.push_back(std::move(entry));
  };
  for (const std::string& setting : expected) {
    if (setting.find('=') != std::string::npos) {
      const auto [name, file] = split_setting("--expect", "NAME=FILE", setting, false);
      add(name, file, nullptr);
    } else if (setting.ends_with(".npz")) {
      for (const auto& [name, tensor] : read_arrays(setting)) add(name, setting, &tensor);
    } else if (outputs.size() == 1) {
      add(outputs.begin()->first, setting, nullptr);
    } else {
      throw Usage(fmt::format("--expect is '{}': the model has {} outputs, so it must be NAME=FILE or a .npz", setting,
                              outputs.size()));
    }
  }
  return entries;
}

// The files that the command reads.
std::vector<std::string> files_read(const Flags& flags) {
  std::vector<std::string> names = flags.session.files();
  for (const std::string& name : flags.inputs.files()) names.push_back(name);
  for (const std::string& expected : flags.expected) {
    names.push_back(expected);
    names.push_back(expected.substr(expected.find('=') + 1));
  }
  return names;
}

Outcome run(const Flags& flags) {
  std::vector<std::string> read = files_read(flags);
  if (is_archive(flags.output)) cli::keep_inputs("--output", flags.output, read);
  const Environment env = flags.session.environment.make();
  const SessionOptions options = flags.session.options(env);
  const Model model = env.open(flags.session.model);
  for (std::string& mapped : cli::mapped_files()) read.push_back(std::move(mapped));
  if (is_archive(flags.output)) cli::keep_inputs("--output", flags.output, read);
  const std::vector<Input> inputs = make_inputs(model.graph(), flags.inputs);
  if (!flags.output.empty() && !is_archive(flags.output)) create_folder(flags.output);

  auto start = std::chrono::steady_clock::now();
  const Session session = env.compile(model, options);
  BoundExec bound = bind_inputs(session, inputs);
  Outcome outcome;
  const double create_ms = milliseconds_since(start);
  start = std::chrono::steady_clock::now();
  bound.exec.run();
  const double run_ms = milliseconds_since(start);
  outcome.json = {{"model", flags.session.model},
                  {"devices", devices_used(env, session)},  // after the run, because one of them may have failed
                  {"create_ms", create_ms},
                  {"run_ms", run_ms}};

  outcome.json["inputs"] = Json::array();
  for (const Input& input : inputs) {
    Json described = describe_output(input.name, *input.value);
    described["source"] = input.source.empty() ? "random" : input.source;
    outcome.json["inputs"].push_back(std::move(described));
  }
  std::map<std::string, onnx::Value> outputs;
  NamedTensors archive;
  std::vector<TensorFile> files;
  std::set<std::string> used;  // names of files in the folder that this run writes
  outcome.json["outputs"] = Json::array();
  for (uint32_t i = 0; i < model.graph().output_count(); ++i) {
    const std::string name(model.graph().output(i).name());
    onnx::Value value = onnx::read_output(env, bound.exec, model.graph(), i);
    Json described = describe_output(name, value);
    if (is_archive(flags.output)) {
      if (value.kind != BP_KIND_TENSOR)
        throw Failure(
            fmt::format("'{}' cannot contain '{}', which is not a tensor: name a folder", flags.output, name));
      described["files"] = {flags.output};
      archive.emplace_back(name, value.tensor);
    }
    const onnx::Value& kept = outputs.emplace(name, std::move(value)).first->second;
    if (!flags.output.empty() && !is_archive(flags.output)) {
      described["files"] = Json::array();
      for (const TensorFile& file : files_of(flags.output, name, kept, used)) {
        cli::keep_inputs("--output", file.path, read);
        described["files"].push_back(file.path);
        files.push_back(file);
      }
    }
    outcome.json["outputs"].push_back(std::move(described));
  }
  for (const TensorFile& file : files) write_tensor(file);
  if (is_archive(flags.output)) write_arrays(flags.output, archive);
  if (!flags.expected.empty()) {
    outcome.json["expected"] = compare_outputs(outputs, flags.expected, flags.tolerance, flags.inputs.cast);
    for (const Json& entry : outcome.json["expected"]) outcome.is_positive &= entry.at("matches").get<bool>();
  }
  note_random(inputs, flags.inputs.seed);
  outcome.text = render(outcome.json);
  return outcome;
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<Flags>();
  flags->session.declare(command);
  flags->inputs.declare(command);
  command
      .add_option("--output", flags->output,
                  "Folder to which the outputs are written, as NAME.npy or NAME.pb, or a .npz for all of them")
      .shown_as("PATH");
  command
      .add_option(
          "--expect", flags->expected,
          "The expected value of an output, as NAME=FILE, or FILE for the only output; or a .npz with arrays of the "
          "outputs' names. Exit status 1 if an output differs")
      .shown_as("NAME=FILE")
      .one_each();
  flags->tolerance.declare(command);
  return [flags] { return run(*flags); };
}

}  // namespace

extern const Verb run_verb = {"run", "runs a model once", declare};

}  // namespace backplane::tools
