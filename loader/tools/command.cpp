// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/guarded.h"
#include "cli/printable.h"

namespace backplane::tools {
namespace {

// Splits values of an option. If a name occurs several times, its last value counts, as for options in general.
std::map<std::string, std::string> last_of_each(std::string_view option, std::string_view form,
                                                const std::vector<std::string>& settings, bool at_last) {
  std::map<std::string, std::string> result;
  for (const std::string& setting : settings) {
    auto [name, value] = split_setting(option, form, setting, at_last);
    result[name] = std::move(value);
  }
  return result;
}

// Notes settings of backends that were not found, and files of --backend that were refused: they have no effect.
void note_ignored(const Environment& env, const std::map<std::string, std::string>& settings, bool also_files) {
  std::set<std::string, std::less<>> ids{"loader"};
  for (const bp_candidate_t& candidate : env.candidates()) {
    ids.emplace(view::text(candidate.id));
    const bool is_given = view::text(candidate.found_by) == "backend_files";
    const bool is_missing = candidate.refusal != BP_REFUSED_NONE && candidate.refusal != BP_REFUSED_DUPLICATE;
    if (also_files && is_given && is_missing) note(fmt::format("--backend is ignored: {}", view::text(candidate.text)));
  }
  ids.erase("");
  for (const auto& [name, value] : settings) {
    const std::string id = name.substr(0, name.find('.'));
    if (!ids.contains(id))
      note(fmt::format("--set {} is ignored: there is no backend '{}'; settings begin with {}", name, id,
                       fmt::join(ids, ", ")));
  }
}

}  // namespace

void note(const std::string& text) {
  cli::print_err(fmt::format("backplane: {}\n", cli::printable(text)));
}

void EnvironmentFlags::declare(cli::Command command) {
  command.add_option("--backend", backends, "A backend's library or manifest, in addition to those that are found")
      .shown_as("FILE")
      .one_each();
  command.add_option("--set", settings, "A setting of the loader or a backend, such as cpu.threads=4")
      .one_each()
      .shown_as("NAME=VALUE");
  command.add_flag("--verbose", verbose, "Log what the loader and the backends do, on standard error");
  limits.declare(command);
}

Environment EnvironmentFlags::make(bool only_lists) const {
  limits.start();
  EnvironmentOptions options;
  options.backend_files = backends;
  options.threads = threads;
  if (verbose) options.log_level = BP_LOG_INFO;
  const std::map<std::string, std::string> given = last_of_each("--set", "NAME=VALUE", settings, false);
  options.options = given;
  if (verbose && compiles_verbosely) {
    options.log_level = BP_LOG_DEBUG;
    options.options.emplace("cpu.implementation", "best");  // selects as usual, but logs the choices
  }
  if (only_lists) options.options.emplace("loader.load", "when_used");
  try {
    const Environment env(options);
    note_ignored(env, given, !only_lists);
    return env;
  } catch (const Error& error) {
    const bool is_setting = error.status() == BP_INVALID_ARGUMENT || error.status() == BP_NOT_FOUND;
    if (is_setting && !settings.empty()) throw Usage(error.text());
    throw;
  }
}

void SessionFlags::declare(cli::Command command) {
  environment.declare(command);
  command.add_option("model", model, "An ONNX file").shown_as("FILE").required();
  command.add_option("--device", devices, "Devices that may be used, preferred first (default: all)")
      .one_each()
      .separated_by(',')
      .shown_as("NAME");
  command
      .add_option("--fallback", fallback,
                  "allow: the cheapest placement; prefer: each node on the first device that supports it; forbid: all "
                  "nodes on the first device")
      .one_of({"allow", "prefer", "forbid"});
  command
      .add_option("--costs", costs,
                  "known: measurements of backplane profile take precedence over estimates of backends; reported: "
                  "estimates alone")
      .one_of({"known", "reported"});
  command.add_option("--pin", pins, "Nodes for a device, as op=Conv=cpu or name=GLOB=cpu")
      .one_each()
      .shown_as("PATTERN=DEVICE");
  command
      .add_option("--compute", compute_types,
                  "Types in which nodes may be computed, in addition to their own (default: none)")
      .one_each()
      .separated_by(',')
      .one_of({"tf32", "bf16", "fp16", "fp16_accumulate", "fp8"});
}

std::vector<std::string> SessionFlags::files() const {
  std::vector<std::string> names = environment.backends;
  names.push_back(model);
  return names;
}

Device find_device(const Environment& env, const std::string& name) {
  std::vector<std::string> names;
  for (Device& each : env.devices()) {
    if (each.is_named(name)) return std::move(each);
    names.push_back(each.name);
  }
  for (const bp_candidate_t& candidate : env.candidates()) {
    const bool is_refused = candidate.refusal != BP_REFUSED_NONE && candidate.refusal != BP_REFUSED_DUPLICATE;
    if (is_refused && view::text(candidate.id) == name.substr(0, name.find(':')))
      throw Usage(fmt::format("there is no device '{}': {}", name, view::text(candidate.text)));
  }
  throw Usage(fmt::format("there is no device '{}'; {}", name,
                          names.empty() ? "no backend was accepted: see backplane list"
                                        : "there is " + fmt::format("{}", fmt::join(names, ", "))));
}

namespace {

uint32_t compute_mask(const std::vector<std::string>& types) {
  constexpr std::pair<std::string_view, uint32_t> kTypes[] = {{"tf32", BP_COMPUTE_TF32},
                                                              {"bf16", BP_COMPUTE_BF16},
                                                              {"fp16", BP_COMPUTE_FP16},
                                                              {"fp16_accumulate", BP_COMPUTE_FP16_ACCUMULATE},
                                                              {"fp8", BP_COMPUTE_FP8}};
  uint32_t mask = 0;
  for (const auto& [name, bit] : kTypes) {
    if (std::ranges::find(types, name) != types.end()) mask |= bit;
  }
  return mask;
}

}  // namespace

SessionOptions SessionFlags::options(const Environment& env) const {
  SessionOptions options;
  for (const std::string& device : devices) options.devices.push_back(find_device(env, device).name);
  options.compute_types = compute_mask(compute_types);
  options.fallback = fallback == "forbid"   ? BP_FALLBACK_FORBID
                     : fallback == "prefer" ? BP_FALLBACK_PREFER
                                            : BP_FALLBACK_ALLOW;
  options.options["loader.costs"] = costs;
  options.pins = last_of_each("--pin", "PATTERN=DEVICE", pins, true);
  for (auto& [pattern, device] : options.pins) {
    device = find_device(env, device).name;
    if (!devices.empty() && std::ranges::find(options.devices, device) == options.devices.end())
      throw Usage(fmt::format("--pin {}={}: the device is not among those of --device, {}", pattern, device,
                              fmt::join(options.devices, ", ")));
  }
  return options;
}

std::pair<std::string, std::string> split_setting(std::string_view option, std::string_view form,
                                                  const std::string& setting, bool at_last) {
  const size_t at = at_last ? setting.rfind('=') : setting.find('=');
  if (at == std::string::npos || at == 0) throw Usage(fmt::format("{} is '{}': it must be {}", option, setting, form));
  return {setting.substr(0, at), setting.substr(at + 1)};
}

std::vector<std::string> devices_used(const Environment& env, const Session& session) {
  std::set<uint64_t> used;
  for (uint32_t i = 0; i < session.model().graph().node_count(); ++i) {
    const bp_placed_node_t node = session.node(i);
    if (node.island != BP_NONE) used.insert(node.device);
  }
  std::vector<std::string> names;
  for (const Device& device : env.devices()) {
    if (used.contains(device.info.id)) names.push_back(device.name);
  }
  return names;
}

uint32_t island_count(const Session& session) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < session.model().graph().node_count(); ++i) {
    const bp_placed_node_t node = session.node(i);
    if (node.island != BP_NONE) count = std::max(count, node.island + 1);
  }
  return count;
}

namespace {

// Builds JSON without looking up existing keys, because an ordered object searches linearly and a model may have any
// number of operators and metadata. Each key occurs once in the loader's reports.
class ReportReader : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw Failure(error.what());
  }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return open_.back()->back();
    }
    return open_.back()->get_ref<Json::object_t&>().emplace_back(std::move(key_), std::move(value)).second;
  }

  Json root_;
  std::vector<Json*> open_;  // pointers stay valid: a container moves only when none of its members is open
  std::string key_;
};

}  // namespace

Json parse_json(const std::string& text) {
  ReportReader reader;
  Json::sax_parse(text, &reader);
  return reader.take();
}

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string type_text(view::Value value) {
  constexpr std::string_view kKinds[] = {"unknown", "tensor", "sparse tensor", "sequence", "optional", "map"};
  const uint32_t kind = value.type().kind;
  if (kind != BP_KIND_TENSOR) return std::string(kKinds[kind < std::size(kKinds) ? kind : 0]);
  if (value.rank() < 0) return fmt::format("{} of any shape", view::dtype_name(value.dtype()));
  std::string dims;
  for (uint32_t i = 0; i < static_cast<uint32_t>(value.rank()); ++i) {
    const std::string_view symbol = value.symbol(i);
    dims += i == 0 ? "" : ",";
    dims += value.extent(i) >= 0 ? std::to_string(value.extent(i)) : symbol.empty() ? "?" : std::string(symbol);
  }
  return fmt::format("{}[{}]", view::dtype_name(value.dtype()), dims);
}

std::string cell(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string count_text(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string join(const Json& list, std::string_view separator) {
  std::string text;
  for (const Json& item : list) text += (text.empty() ? "" : std::string(separator)) + cell(item);
  return text;
}

}  // namespace backplane::tools
