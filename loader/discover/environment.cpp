// SPDX-License-Identifier: Apache-2.0
// Turns files into backends and devices. `Maker::consider` handles one file. An error there refuses that candidate and
// does not affect the others.
#include "discover/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "base/abi.h"
#include "cli/printable.h"
#include "discover/elf.h"
#include "discover/isolation.h"
#include "discover/known.h"
#include "discover/manifest.h"
#include "discover/negotiate.h"
#include "discover/opened.h"
#include "discover/opening.h"
#include "discover/probe.h"
#include "discover/search.h"
#include "discover/selection.h"
#include "discover/signature.h"
#include "discover/survey.h"
#include "discover/writers.h"
#include "host/cache.h"
#include "host/variable.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxText = 64 << 10;  // bytes of a candidate's text

struct Settings {
  Selection selection;
  ProbeSettings probe;
  bool when_used = false;                             // a backend that an earlier process stored is loaded on first use
  std::optional<std::set<std::string>> trusted_keys;  // set if manifests must be signed
  Isolation isolation;
  CacheSettings cache;
  ImportLimits import;
  bool refuses_contradictions = false;
  std::chrono::milliseconds abandon_after{100};
  std::string ignored;  // a line about a variable whose value is invalid and is not used; empty: none
  std::map<std::string, Host::Options, std::less<>> backends;  // by backend id; names lack the prefix "<id>."
};

template <class Number>
Status read_option(std::string_view name, std::string_view value, std::optional<Number>& out) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !(number >= 0))
    return {BP_INVALID_ARGUMENT,
            fmt::format("option loader.{} is \"{}\": it must be a number, 0 for no limit", name, value)};
  out = number;
  return {};
}

Status loader_option(std::string_view name, std::string_view value, Settings& settings) {
  if (value.find('\0') != value.npos)
    return {BP_INVALID_ARGUMENT, fmt::format("the value of option loader.{} has a null character", name)};
  if (name == "disable" || name == "select") {
    name == "select" ? settings.selection.select(value) : settings.selection.disable(value);
    return {};
  }
  if (name == "isolate" || name == "isolate_sandbox" || name == "isolate_paths")
    return settings.isolation.set(name, value);
  if (name == "load") {
    if (value != "now" && value != "when_used")
      return {BP_INVALID_ARGUMENT, fmt::format("option loader.load is \"{}\": it must be now or when_used", value)};
    settings.when_used = value == "when_used";
    return {};
  }
  if (name == "require_signed") {
    BP_ASSIGN(settings.trusted_keys, read_trusted_keys(fs::path(value)));
    return {};
  }
  if (name == "probe") {
    if (value == "always")
      settings.probe.policy = ProbePolicy::kAlways;
    else if (value == "cached")
      settings.probe.policy = ProbePolicy::kCached;
    else if (value == "if_possible")
      settings.probe.policy = ProbePolicy::kIfPossible;
    else if (value == "never")
      settings.probe.policy = ProbePolicy::kNever;
    else
      return {BP_INVALID_ARGUMENT,
              fmt::format("option loader.probe is \"{}\": it must be always, cached, if_possible or never", value)};
    return {};
  }
  if (name == "cache") {
    settings.cache.folder = value;
    if (value.empty() || settings.cache.folder.is_absolute()) return {};
    return {BP_INVALID_ARGUMENT,
            fmt::format("option loader.cache is \"{}\": it must be an absolute path, or empty for none", value)};
  }
  if (name == "cache_bytes") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), settings.cache.bytes);
    if (error == std::errc() && end == value.data() + value.size()) return {};
    return {BP_INVALID_ARGUMENT,
            fmt::format("option loader.cache_bytes is \"{}\": it must be a whole number of bytes", value)};
  }
  if (name == "contradictions") {
    settings.refuses_contradictions = value == "refused";
    if (value == "refused" || value == "noted") return {};
    return {BP_INVALID_ARGUMENT,
            fmt::format("option loader.contradictions is \"{}\": it must be noted or refused", value)};
  }
  if (name == "abandon_after") {
    constexpr uint32_t kMost = 3'600'000;
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    settings.abandon_after = std::chrono::milliseconds(number);
    if (error == std::errc() && end == value.data() + value.size() && number > 0 && number <= kMost) return {};
    return {BP_INVALID_ARGUMENT,
            fmt::format("option loader.abandon_after is \"{}\": it must be a number of milliseconds from 1 to {}",
                        value, kMost)};
  }
  if (name == "import_bytes") return read_option(name, value, settings.import.bytes);
  if (name == "import_seconds") return read_option(name, value, settings.import.seconds);
  return {BP_NOT_FOUND,
          fmt::format(
              "there is no option loader.{}: the options are loader.abandon_after, loader.cache, loader.cache_bytes, "
              "loader.contradictions, loader.disable, loader.import_bytes, loader.import_seconds, "
              "loader.isolate, loader.isolate_paths, "
              "loader.isolate_sandbox, loader.load, loader.probe, loader.require_signed and loader.select",
              name)};
}

Result<Settings> read_settings(const bp_env_desc_t& desc) {
  Settings settings;
  if (const fs::path folder = cache_folder(); !folder.empty()) settings.cache.folder = folder / "programs";
  const auto check_array = [](const char* name, bool is_null, uint32_t count) -> Status {
    if (!is_null || count == 0) return {};
    return {BP_INVALID_ARGUMENT, fmt::format("bp_env_desc_t.{} is NULL, but its count is {}", name, count)};
  };
  BP_TRY(check_array("backend_files", !desc.backend_files, desc.backend_file_count));
  BP_TRY(check_array("backend_folders", !desc.backend_folders, desc.backend_folder_count));
  BP_TRY(check_array("plugins", !desc.plugins, desc.plugin_count));
  for (const bp_text_t file : std::span(desc.backend_files, desc.backend_file_count))
    BP_TRY(abi::path(file, "backend_files").take_status());
  for (const bp_text_t folder : std::span(desc.backend_folders, desc.backend_folder_count))
    BP_TRY(abi::path(folder, "backend_folders").take_status());
  BP_TRY(abi::check_chain(desc.chain));
  BP_TRY(abi::check_flags(desc.flags, BP_ENV_ONLY_GIVEN, "bp_env_desc_t.flags"));
  if (desc.log_level > BP_LOG_DEBUG)
    return Status(BP_INVALID_ARGUMENT,
                  fmt::format("bp_env_desc_t.log_level is {}: it must be 0 or one of BP_LOG_*, which end with {}",
                              desc.log_level, BP_LOG_DEBUG));
  if (const char* patterns = variable("BACKPLANE_DISABLE")) settings.selection.disable(patterns);
  if (const char* patterns = variable("BACKPLANE_SELECT")) settings.selection.select(patterns);
  if (const char* folder = variable("BACKPLANE_REQUIRE_SIGNED"); folder && *folder)
    BP_TRY(loader_option("require_signed", folder, settings).context("BACKPLANE_REQUIRE_SIGNED"));
  for (const auto& [name, option] :
       {std::pair("BACKPLANE_ISOLATE", "isolate"), std::pair("BACKPLANE_ISOLATE_SANDBOX", "isolate_sandbox"),
        std::pair("BACKPLANE_ISOLATE_PATHS", "isolate_paths")})
    if (const char* value = variable(name)) BP_TRY(loader_option(option, value, settings).context(name));
  if (const char* text = variable("BACKPLANE_SCAN_TIMEOUT_MS")) {
    uint32_t limit = 0;
    const std::string_view digits = text;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), limit);
    // An invalid value does not make the program fail: the default is used.
    if (error == std::errc() && end == digits.data() + digits.size() && limit > 0)
      settings.probe.limit = std::chrono::milliseconds(std::min<uint32_t>(limit, 3'600'000));
    else
      settings.ignored = fmt::format(
          "BACKPLANE_SCAN_TIMEOUT_MS is \"{}\" and is ignored: set it to a number of milliseconds, at least 1; the "
          "limit is {} ms",
          digits, settings.probe.limit.count());
  }
  BP_TRY(abi::check_array(desc.options, desc.option_count, desc.option_stride, "desc.options"));
  for (uint32_t i = 0; i < desc.option_count; ++i) {
    const bp_option_t option = abi::element(desc.options, i, desc.option_stride);
    const std::string_view name = abi::view(option.name);
    const size_t dot = name.find('.');
    if (dot == name.npos || dot == 0)
      return Status(
          BP_NOT_FOUND,
          fmt::format("there is no option \"{}\": option names are \"loader.<name>\" or \"<backend>.<name>\"", name));
    if (name.substr(0, dot) == "loader")
      BP_TRY(loader_option(name.substr(dot + 1), abi::view(option.value), settings));
    else
      settings.backends[std::string(name.substr(0, dot))][std::string(name.substr(dot + 1))] =
          abi::string(option.value);
  }
  return settings;
}

// Whether this refusal is normal, so that it needs no warning unless the file was named: the backend is a duplicate,
// disabled, not selected or without devices, or its plugin refused to be loaded (BP_REFUSED_BY_PLUGIN).
bool expected(uint32_t refusal) {
  return refusal == BP_REFUSED_DUPLICATE || refusal == BP_REFUSED_DISABLED || refusal == BP_REFUSED_DEVICES ||
         refusal == BP_REFUSED_BY_PLUGIN;
}

}  // namespace

struct Environment::Maker {
  Environment& env;
  Settings settings;

  const Log& log() const { return discovery; }

  std::map<std::string, std::string> masks;  // by full id: the path of the first manifest with that id
  std::map<fs::path, std::string> disabled;  // by file name: the path of the empty manifest of that name
  Log discovery = env.services_->log().about(LogCategory::kDiscover);
  CheckedFolders checked;
  OpenedLibraries opened;
  SeenNames seen;               // names of the backends in libraries
  SeenNames linked;             // names of those in plugins linked into the program, which cannot be isolated
  std::string plain_situation;  // shared by backends with neither options nor isolation
  std::map<std::string, std::string> situations;  // all other situations, by backend id

  Refusal may_take(std::string_view id, std::string_view full_id, std::string_view file) const {
    if (const std::string_view why = settings.selection.unwanted(id, full_id); !why.empty())
      return {BP_REFUSED_DISABLED, fmt::format("{}: backend {} {}", file, id, why)};
    for (const auto& taken : env.backends_)
      if (taken->id == id)
        return {BP_REFUSED_DUPLICATE, fmt::format("{}: backend {} was already found in {}", file, id, taken->library)};
    return {};
  }

  // Refuses an empty manifest. Also refuses a manifest that was found in a folder if an earlier manifest masks it (same
  // id) or disables it (same file name, empty).
  Refusal unmasked(const Found& found, const Manifest& manifest) {
    const std::string file = found.path.string();
    if (manifest.disables) {
      disabled.try_emplace(found.path.filename(), file);
      return {BP_REFUSED_DISABLED, fmt::format("manifest {} is empty: it disables {} in later folders", file,
                                               found.path.filename().string())};
    }
    if (const auto empty = disabled.find(found.path.filename()); found.listed && empty != disabled.end())
      return {BP_REFUSED_DISABLED, fmt::format("manifest {} is disabled by the empty {}", file, empty->second)};
    const auto [first, is_new] = masks.try_emplace(manifest.full_id, file);
    if (!is_new && found.listed)
      return {BP_REFUSED_DUPLICATE, fmt::format("manifest {} is masked by {}, which also has the id {}", file,
                                                first->second, manifest.full_id)};
    return {};
  }

  Refusal check_manifest(const Found& found, const Manifest& manifest, Candidate& candidate) {
    candidate.id = manifest.backend_id;
    candidate.library = manifest.library.string();
    seen.insert({manifest.backend_id, manifest.full_id});
    if (Refusal refusal = unmasked(found, manifest)) return refusal;
    if (Refusal refusal = may_take(manifest.backend_id, manifest.full_id, candidate.manifest)) return refusal;
    if (manifest.version_max < BP_ABI_VERSION_MIN || manifest.version_min > BP_ABI_VERSION)
      return {BP_REFUSED_VERSION,
              fmt::format(
                  "manifest {}: its backend supports ABI {}.{} to {}.{}, but this loader supports {}.{}: install a "
                  "build for this loader",
                  candidate.manifest, BP_VERSION_MAJOR(manifest.version_min), BP_VERSION_MINOR(manifest.version_min),
                  BP_VERSION_MAJOR(manifest.version_max), BP_VERSION_MINOR(manifest.version_max),
                  BP_VERSION_MAJOR(BP_ABI_VERSION), BP_VERSION_MINOR(BP_ABI_VERSION))};
    if (const std::string own = own_machine();
        !manifest.arch.empty() && std::ranges::find(manifest.arch, own) == manifest.arch.end())
      return {BP_REFUSED_ARCHITECTURE,
              fmt::format("manifest {}: its library is for {}, but this process needs {}: install that build",
                          candidate.manifest, fmt::join(manifest.arch, ", "), own)};
    if (settings.trusted_keys)
      if (Refusal refusal = check_signature(manifest, candidate.manifest, *settings.trusted_keys)) return refusal;
    return {};
  }

  static uint64_t fnv1a(std::string_view text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
  }

  // Derives an id from the UUID and PCI address if the driver reports one of them, otherwise from the device's number
  // in its backend, so that it is the same in every process. If another device of the environment or of `others` has
  // this id, returns the next free one, which may differ between processes.
  uint64_t id_of(std::string_view backend, const bp_device_info_t& info,
                 std::span<const std::unique_ptr<Device>> others) const {
    const std::span<const uint8_t> uuid(info.uuid);
    std::string identity = fmt::format("{}|{}|", backend, abi::view(info.pci));
    for (const uint8_t byte : uuid) fmt::format_to(std::back_inserter(identity), "{:02x}", byte);
    const bool unique = info.pci.size != 0 || std::ranges::any_of(uuid, [](uint8_t byte) { return byte != 0; });
    if (!unique) fmt::format_to(std::back_inserter(identity), "|{}", info.index);
    uint64_t id = fnv1a(identity);
    const auto taken = [&](const auto& device) { return device->id() == id; };
    while (id == 0 || env.device_of(id).ok() || std::ranges::any_of(others, taken)) ++id;
    return id;
  }

  std::vector<std::unique_ptr<Device>> make_devices(Backend& backend, std::vector<bp_device_info_t>& infos) const {
    std::vector<std::unique_ptr<Device>> devices;
    for (bp_device_info_t& info : infos) {
      info.id = id_of(backend.id, info, devices);
      if (info.index == 0) backend.host->set_first_device(info.id);
      const uint32_t number = info.index, index = static_cast<uint32_t>(env.devices_.size()) + number + 1;
      devices.push_back(std::make_unique<Device>(backend, index,
                                                 number == 0 ? backend.id : fmt::format("{}:{}", backend.id, number),
                                                 info, static_cast<uint32_t>(infos.size())));
    }
    return devices;
  }

  // Adds a backend (already created, or to be loaded on first use) and its devices to the environment.
  void enter(std::unique_ptr<Backend> backend, std::vector<bp_device_info_t>& infos, Candidate& candidate,
             bool isolated) {
    candidate.isolated = isolated;
    auto devices = make_devices(*backend, infos);
    if (!backend->load) candidate.version = backend->plugin->version;
    candidate.device_count = static_cast<uint32_t>(devices.size());
    env.backends_.push_back(std::move(backend));
    for (auto& device : devices) {
      env.services_->trace().name_device(device->id(), device->name());
      env.devices_.push_back(std::move(device));
    }
  }

  const Host::Options& options_of(std::string_view id) const {
    static const Host::Options kNone;
    const auto found = settings.backends.find(id);
    return found == settings.backends.end() ? kNone : found->second;
  }

  // Describes the isolated backend's process, for the candidate's text.
  std::string bounds() const {
    const std::string& sandbox = settings.isolation.sandbox();
    return fmt::format(", in a process of its own ({})", sandbox == "off" ? "no sandbox" : sandbox + " sandbox");
  }

  // The situation of a backend (known.h). Backends with neither options nor isolation share one.
  const std::string& situation_of(std::string_view id, bool isolated) {
    Host::Options options = options_of(id);
    const bool plain = options.empty() && !isolated;
    std::string& known = plain ? plain_situation : situations[std::string(id)];
    if (known.empty()) {
      if (isolated) options.emplace("", settings.isolation.text());
      known = situation(options);
    }
    return known;
  }

  // A file that was found. If it is a manifest, includes the parsed manifest.
  struct Considered : Found {
    Manifest manifest;
    Refusal refusal;  // why the manifest was refused, if it was
  };

  // Reads the manifests. Sorts those of one folder by descending priority, and keeps the order of everything else.
  std::vector<Considered> read_manifests(std::vector<Found> found) {
    std::vector<Considered> read;
    for (Found& one : found) {
      read.push_back({std::move(one), {}, {}});
      Considered& last = read.back();
      if (!last.folder && last.path.extension() == ".json")
        last.refusal = read_manifest(last.path, log(), last.manifest, &checked);
    }
    for (auto begin = read.begin(); begin != read.end();) {
      const auto end = std::find_if(begin + 1, read.end(), [&](const Considered& other) {
        return !other.listed || !begin->listed || other.path.parent_path() != begin->path.parent_path();
      });
      std::stable_sort(begin, end, [](const Considered& a, const Considered& b) {
        return a.manifest.priority > b.manifest.priority;
      });
      begin = end;
    }
    return read;
  }

  // Returns the settings of the process in which a backend runs; null if it runs in this process. `id` is the one in
  // the manifest or the one that the plugin reports; empty: not known yet. `other` is another name that patterns match.
  std::shared_ptr<const Isolation> isolation_of(const std::string& id, const std::string& other,
                                                bool by_manifest) const {
    const std::string& name = id.empty() ? other : id;
    if (!settings.isolation.wanted(name, other, by_manifest)) return nullptr;
    auto isolation = std::make_shared<Isolation>(settings.isolation);
    const Host::Options& options = options_of(name);
    const auto path = options.find("path");
    isolation->allow_paths_of(name, path == options.end() ? std::string_view() : path->second);
    return isolation;
  }

  static bool is_same(const std::shared_ptr<const Isolation>& a, const std::shared_ptr<const Isolation>& b) {
    return a && b ? a->text() == b->text() : !a && !b;
  }

  // Logs the patterns that match no backend, because a mistyped one would otherwise go unnoticed.
  void report_unmatched_patterns() const {
    if (seen.empty()) return;
    if (const std::string list = settings.isolation.unmatched(seen); !list.empty())
      log().warning(
          fmt::format("BACKPLANE_ISOLATE or option loader.isolate has {}, which no backend that was found matches: "
                      "`backplane list` shows their ids",
                      list));
    // No warning, because it is usual to disable or select backends that are not installed everywhere.
    SeenNames all = seen;
    all.insert(linked.begin(), linked.end());
    if (const std::string list = settings.selection.unmatched(all); !list.empty())
      log().info(
          fmt::format("BACKPLANE_DISABLE, BACKPLANE_SELECT or their options have {}, which no backend that was "
                      "found matches",
                      list));
  }

  Refusal consider(const Considered& found, Candidate& candidate) {
    if (found.folder) {
      candidate.manifest = found.path.string();
      return {BP_REFUSED_MISSING, fmt::format("folder {} cannot be read", candidate.manifest)};
    }
    const bool has_manifest = found.path.extension() == ".json";
    if (has_manifest) {
      candidate.manifest = found.path.string();
      if (found.refusal) return found.refusal;
      if (Refusal refusal = check_manifest(found, found.manifest, candidate)) return refusal;
    }
    const fs::path library = has_manifest ? found.manifest.library : found.path;
    candidate.library = library.string();
    if (settings.trusted_keys && !has_manifest)
      return {BP_REFUSED_UNTRUSTED, fmt::format("{} has no manifest that signs it, and BACKPLANE_REQUIRE_SIGNED or "
                                                "option loader.require_signed requires a signature",
                                                candidate.library)};
    const Manifest& manifest = found.manifest;
    const std::string other = has_manifest ? manifest.full_id : id_of_file(library);
    if (!has_manifest) seen.insert(other);
    Opening opening{library,         candidate.manifest, manifest.backend_id,
                    manifest.sha256, settings.probe,     isolation_of(manifest.backend_id, other, manifest.isolated)};
    // Only the plugin knows its id without a manifest. It is queried in a process of its own if a pattern may select
    // that id.
    if (!has_manifest && !opening.isolation && settings.isolation.selects())
      opening.isolation = isolation_of("", other, true);
    if (settings.when_used && !found.manifest.backend_id.empty())
      if (std::optional<Refusal> known = take_known(opening, candidate)) return std::move(*known);
    auto backend = std::make_unique<Backend>();
    FileFacts facts;
    const auto before = std::chrono::system_clock::now().time_since_epoch();
    if (Refusal refusal = opened.open(opening, log(), *backend, facts)) return refusal;
    candidate.id = backend->id;
    seen.insert(backend->id);
    if (Refusal refusal = may_take(backend->id, found.manifest.full_id, backend->library)) return refusal;
    if (!has_manifest)
      if (auto isolation = isolation_of(backend->id, other, false); !is_same(isolation, opening.isolation)) {
        log().info(fmt::format("{}: its id is {}, and a backend with that id {} in a process of its own",
                               candidate.library, backend->id, isolation ? "runs" : "does not run"));
        opening.isolation = std::move(isolation);
        backend = std::make_unique<Backend>();
        if (Refusal refusal = opened.open(opening, log(), *backend, facts)) return refusal;
      }
    std::vector<bp_device_info_t> infos;
    bool none = false;
    Refusal refusal = start(*backend, library, infos, &none);
    if (settings.probe.policy == ProbePolicy::kCached && (none || !refusal))
      remember(*backend, opening, facts, before, infos, refusal.text);
    else if (refusal)
      forget_backend(library, situation_of(backend->id, opening.isolation != nullptr));
    if (refusal) return refusal;
    enter(std::move(backend), infos, candidate, opening.isolation != nullptr);
    return {};
  }

  // `out_none` is as for survey_devices.
  Refusal start(Backend& backend, const fs::path& library, std::vector<bp_device_info_t>& out_infos,
                bool* out_none = nullptr) const {
    if (Refusal refusal =
            create_backend(backend, library.parent_path().string(), env.services_, options_of(backend.id)))
      return refusal;
    return survey_devices(backend, out_infos, out_none);
  }

  // Adds the backend and devices that an earlier process stored, without opening the library, or returns the refusal of
  // a backend that had no device. Returns nullopt if there is no valid entry.
  std::optional<Refusal> take_known(const Opening& opening, Candidate& candidate) {
    if (check_writers(opening.library, &checked)) return std::nullopt;
    const std::string& where = situation_of(opening.expected_id, opening.isolation != nullptr);
    const auto known = recall_backend(opening.library, where, checked);
    if (!known || known->id != opening.expected_id || known->sha256 != opening.sha256) return std::nullopt;
    if (known->devices.empty()) return Refusal{BP_REFUSED_DEVICES, known->no_device};
    auto backend = std::make_unique<Backend>();
    backend->id = known->id;
    backend->library = candidate.library;
    backend->host = std::make_shared<Host>(env.services_, backend->id, options_of(backend->id), known->version);
    load_when_used(*backend, opening, env.services_, known->devices.size(), where);
    std::vector<std::vector<bp_option_t>> properties(known->devices.size());
    std::vector<bp_device_info_t> infos;
    for (size_t i = 0; i < known->devices.size(); ++i) infos.push_back(known->devices[i].info(properties[i]));
    candidate.version = known->version;
    enter(std::move(backend), infos, candidate, opening.isolation != nullptr);
    return Refusal{};
  }

  void remember(const Backend& backend, const Opening& opening, const FileFacts& facts, std::chrono::nanoseconds seen,
                const std::vector<bp_device_info_t>& infos, const std::string& no_device) {
    KnownBackend known;
    known.facts = facts;
    known.seen_ns = seen.count();
    known.id = backend.id;
    known.sha256 = opening.sha256;
    known.version = backend.plugin->version;
    for (const bp_device_info_t& info : infos) known.devices.emplace_back(info);
    known.no_device = no_device;
    const std::string& where = situation_of(backend.id, opening.isolation != nullptr);
    // Writes only if no entry with the same devices is stored, so that later starts do not write to the disk.
    const auto stored = recall_backend(opening.library, where, checked);
    if (!stored || !have_same_devices(*stored, known)) remember_backend(opening.library, where, known);
  }

  // Adds a plugin that is linked into the program.
  Refusal take(bp_plugin_query_t query, Candidate& candidate) {
    auto backend = std::make_unique<Backend>();
    if (Refusal refusal = negotiate(query, candidate.library, {}, *backend->tables)) return refusal;
    backend->id = candidate.id = abi::string(backend->plugin->id);
    linked.insert(backend->id);
    backend->library = candidate.library;
    if (Refusal refusal = may_take(backend->id, {}, backend->library)) return refusal;
    std::vector<bp_device_info_t> infos;
    if (Refusal refusal = start(*backend, {}, infos)) return refusal;
    enter(std::move(backend), infos, candidate, false);
    return {};
  }
};

Result<std::shared_ptr<Environment>> Environment::create(const bp_env_desc_t& desc) {
  BP_ASSIGN(Settings settings, read_settings(desc));
  std::shared_ptr<Environment> env(new Environment);
  env->services_ = std::make_shared<Services>(desc);
  env->cache_ = settings.cache;
  env->import_limits_ = settings.import;
  env->refuses_contradictions_ = settings.refuses_contradictions;
  env->abandon_after_ = settings.abandon_after;
  Maker maker{*env, std::move(settings)};
  if (const std::string& ignored = maker.settings.ignored; !ignored.empty()) maker.log().warning(ignored);
  const auto enter = [&](Candidate candidate, Refusal refusal, bool named) {
    candidate.refusal = refusal.code;
    const std::string text = refusal ? std::move(refusal.text)
                                     : fmt::format("{}: backend {}, ABI {}.{}, devices: {}", candidate.library,
                                                   candidate.id, BP_VERSION_MAJOR(candidate.version),
                                                   BP_VERSION_MINOR(candidate.version), candidate.device_count) +
                                           (candidate.isolated ? maker.bounds() : "");
    candidate.text = cli::printable(text, kMaxText);  // manifests, plugins and names of files may have several lines
    const bool bad = refusal && (!expected(refusal.code) || (named && refusal.code != BP_REFUSED_DUPLICATE));
    // The framework set options for this backend, so it wants the backend. Probably one of the options is wrong.
    const bool misconfigured = refusal.code == BP_REFUSED_CREATE && !maker.options_of(candidate.id).empty();
    maker.log().write(misconfigured ? BP_LOG_ERROR : bad ? BP_LOG_WARNING : BP_LOG_INFO, {}, candidate.text);
    env->candidates_.push_back(std::move(candidate));
  };
  for (uint32_t i = 0; i < desc.plugin_count; ++i) {
    Candidate candidate;
    candidate.found_by = "plugins";
    candidate.library = fmt::format("plugin {} of the program", i);
    Refusal refusal =
        desc.plugins[i]
            ? maker.take(desc.plugins[i], candidate)
            : Refusal{BP_REFUSED_SYMBOL, fmt::format("{}: bp_env_desc_t.plugins[{}] is NULL", candidate.library, i)};
    enter(std::move(candidate), std::move(refusal), true);
  }
  env->search_paths_ = backplane::search_paths(desc);
  for (const auto& found : maker.read_manifests(search(env->search_paths_))) {
    Candidate candidate;
    candidate.found_by = found.found_by;
    Refusal refusal = maker.consider(found, candidate);
    enter(std::move(candidate), std::move(refusal), found.named);
  }
  maker.report_unmatched_patterns();
  return env;
}

Environment::~Environment() = default;

Result<Device*> Environment::find(std::string_view name) const {
  for (const auto& device : devices_)
    if (device->is_named(name)) return device.get();
  std::string names;
  for (const auto& device : devices_) names += (names.empty() ? "" : ", ") + device->name();
  const std::string_view none =
      candidates_.empty() ? "no backend was found" : "every backend that was found was refused";
  return Status(BP_NOT_FOUND, fmt::format("there is no device \"{}\": {}", name,
                                          names.empty() ? fmt::format("{} (see `backplane list`)", none)
                                                        : "the devices are " + names));
}

Result<Device*> Environment::device(uint32_t index) const {
  if (index == 0 || index > devices_.size())
    return Status(BP_NOT_FOUND,
                  fmt::format("there is no device {}: devices are numbered from 1 to {}", index, devices_.size()));
  return devices_[index - 1].get();
}

Result<Device*> Environment::device_of(uint64_t id) const {
  for (const auto& device : devices_)
    if (device->id() == id) return device.get();
  return Status(BP_NOT_FOUND, fmt::format("there is no device with the id {:#x}: see bp_device_info_t.id", id));
}

}  // namespace backplane
