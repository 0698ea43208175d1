// SPDX-License-Identifier: Apache-2.0
// The ONNXIFI backend: a device for each backend id of each library that was found.
#include <cstdlib>
#include <deque>

#include "device.h"
#include "downgrade.h"
#include "program.h"
#include "search.h"
#include "status.h"
#include "trial.h"

namespace onnxifi_backend {
namespace {

using namespace backplane::sdk;

uint32_t kind_of(onnxEnum type) {
  switch (type) {
    case ONNXIFI_DEVICE_TYPE_NPU:
      return BP_DEVICE_NPU;
    case ONNXIFI_DEVICE_TYPE_GPU:
      return BP_DEVICE_GPU;
    case ONNXIFI_DEVICE_TYPE_CPU:
      return BP_DEVICE_CPU;
    case ONNXIFI_DEVICE_TYPE_FPGA:
      return BP_DEVICE_FPGA;
    default:
      return BP_DEVICE_OTHER;
  }
}

// A backend id, what its library reports about it, and the texts of its device info.
struct Entry {
  const Library* library;
  onnxBackendID id;
  BackendInfo reported;
  std::string name, arch;
  std::vector<std::pair<std::string, std::string>> property_texts;
  std::vector<bp_option_t> properties;
};

// Set while a library is queried for its backends. A library that uses Backplane itself must not find ONNXIFI libraries
// in turn.
thread_local bool is_asking = false;

constexpr size_t kMostDevices = 256;  // the most devices of a backend that the loader accepts

}  // namespace

class Backend : public backplane::sdk::Backend {
 public:
  static constexpr About kAbout{"onnxifi", "ONNXIFI libraries", "Backplane", "1.0"};
  static constexpr bp_opset_t kOpsets[] = {{{"", 0}, kNewestOpset, 0}};
  static constexpr std::array<std::string_view, 2> kOptions = {"path", "weights"};
  using Device = onnxifi_backend::Device;
  using Program = IslandProgram;
  using Instance = StreamedProgram::Run;

  explicit Backend(const bp_backend_create_t& how) : backplane::sdk::Backend(how) {
    const std::string_view weights = host().option("weights").value_or("auto");
    if (weights != "auto" && weights != "model" && weights != "descriptors")
      throw Error(BP_INVALID_ARGUMENT,
                  "option onnxifi.weights is '" + std::string(weights) + "'; it must be auto, model or descriptors");
    weights_ = weights == "model" ? Weights::kModel : weights == "auto" ? Weights::kAuto : Weights::kDescriptors;
  }
  ~Backend() override { release_ids(); }

  uint32_t device_count(std::string& why_none) override {
    if (is_asking) {
      why_none = "an ONNXIFI library that lists its backends must not find ONNXIFI libraries itself";
      return 0;
    }
    if (!is_found_) find();
    why_none = why_none_;
    return static_cast<uint32_t>(entries_.size());
  }

  bp_device_info_t device_info(uint32_t index) override {
    const Entry& entry = entries_.at(index);
    const BackendInfo& reported = entry.reported;
    bp_device_info_t info{};
    info.kind = kind_of(reported.device_type);
    info.flags = BP_DEVICE_UNIFIED_MEMORY;
    info.name = text(entry.name);
    info.vendor = text(reported.vendor);
    info.driver = text(reported.version);
    info.arch = text(entry.arch);
    info.pci = text(reported.pci);
    info.memory_bytes = reported.memory_bytes;
    info.memory_bandwidth = reported.memory_bandwidth;
    info.link_bandwidth = std::min(reported.read_bandwidth, reported.write_bandwidth);
    info.launch_ns = 20'000;  // for two events and waking a stream thread
    info.flops_fp32 = 2.0 * static_cast<double>(reported.macs_fp32);
    info.flops_fp16 = 2.0 * static_cast<double>(reported.macs_fp16);
    for (bp_dtype_t dtype = 0; dtype <= BP_DTYPE_BFLOAT16; ++dtype) {
      if (is_expressible(dtype)) info.dtypes |= one(dtype);
    }
    info.properties = entry.properties.data();
    info.property_count = static_cast<uint32_t>(entry.properties.size());
    info.property_stride = sizeof(bp_option_t);
    return info;
  }

  std::unique_ptr<backplane::sdk::Device> open(uint32_t index, const Options& options,
                                               const bp_device_open_t&) override {
    options.allow({});
    const Entry& entry = entries_.at(index);
    return std::make_unique<Device>(*this, *entry.library, entry.id, entry.reported, weights_);
  }

 private:
  void release_ids() {
    for (const Entry& entry : entries_) {
      const std::unique_lock<std::mutex> lock = entry.library->guard();
      entry.library->functions().release_backend_id(entry.id);
    }
  }

  void find() {
    is_found_ = true;
    std::string named(host().option("path").value_or(""));
    if (const char* const path = secure_getenv("BACKPLANE_ONNXIFI_PATH")) named.append(":").append(path);
    std::vector<Found> libraries = find_libraries(named);
    try_in_children(libraries);
    std::string refusals;
    for (const Found& found : libraries) {
      std::string why = found.refusal;
      if (why.empty()) {
        const size_t known = entries_.size();
        const std::optional<Error> failure = caught([&] { take(found.path, [](const char*) {}); });
        if (!failure && entries_.size() != known) continue;
        if (!failure) {  // no warning: its hardware may be absent
          refusals.append(refusals.empty() ? "" : "; ").append(found.path.native()).append(" reports no backends");
          continue;
        }
        why = failure->text;
        if (why.find(found.path.native()) == std::string::npos) why = found.path.native() + ": " + why;
      }
      host().log(BP_LOG_WARNING, "ONNXIFI library not used: " + why);
      refusals.append(refusals.empty() ? "" : "; ").append(why);
    }
    if (!entries_.empty()) return;
    why_none_ = !refusals.empty() ? refusals
                                  : "no libonnxifi-*.so with a backend was found in the system's library folders, "
                                    "the option onnxifi.path or BACKPLANE_ONNXIFI_PATH";
  }

  // Refuses libraries that crash, exit or hang in a child process that lists their backends. If a library merely
  // returns an error there, `find` reports it.
  void try_in_children(std::vector<Found>& libraries) {
    std::vector<Found*> tried;
    for (Found& found : libraries) {
      if (found.refusal.empty()) tried.push_back(&found);
    }
    const auto use = [&](size_t i, const OnCall& on_call) {
      caught([&] { take(tried[i]->path, on_call); });
      on_call("onnxReleaseBackendID");
      release_ids();
    };
    const std::vector<std::string> failures = try_each(tried.size(), use, trial_limit());
    for (size_t i = 0; i < tried.size(); ++i) {
      if (!failures[i].empty()) tried[i]->refusal = tried[i]->path.native() + " " + failures[i];
    }
  }

  void take(const std::filesystem::path& path, const OnCall& on_call) {
    struct Asking {
      Asking() { is_asking = true; }
      ~Asking() { is_asking = false; }
    } const asking;
    on_call("dlopen");
    Library* const library = libraries_.emplace_back(std::make_unique<Library>(path)).get();
    on_call("onnxGetBackendIDs");
    const std::vector<onnxBackendID> ids = library->backend_ids();
    if (entries_.size() + ids.size() > kMostDevices) {  // the loader would refuse this backend with all its devices
      on_call("onnxReleaseBackendID");
      for (onnxBackendID const id : ids) library->functions().release_backend_id(id);
      throw Error(BP_RESOURCE_EXHAUSTED, path.native() + " reports " + std::to_string(ids.size()) +
                                             " backends; with those of the libraries before it, " +
                                             "that is more than " + std::to_string(kMostDevices) +
                                             " devices: name fewer libraries");
    }
    bool is_thread_safe = !ids.empty();
    on_call("onnxGetBackendInfo");
    for (onnxBackendID const id : ids) {
      Entry& entry = entries_.emplace_back(Entry{library, id, info_of(*library, id), {}, {}, {}, {}});
      const BackendInfo& reported = entry.reported;
      is_thread_safe = is_thread_safe && (reported.capabilities & ONNXIFI_CAPABILITY_THREAD_SAFE) != 0;
      const std::string file = path.filename().native();
      entry.name = !reported.device.empty() && reported.device != reported.name
                       ? (reported.name.empty() ? reported.device : reported.name + ": " + reported.device)
                   : !reported.name.empty() ? reported.name
                                            : file;
      entry.arch = file + " " + reported.version;
      entry.property_texts = {{"onnxifi.library", path.native()},
                              {"onnxifi.ir_versions", reported.ir_versions},
                              {"onnxifi.opsets", reported.opset_versions},
                              {"onnxifi.extensions", reported.extensions}};
      if (library->is_fork()) entry.property_texts.emplace_back("onnxifi.descriptors", "96 bytes");
      for (const auto& [name, value] : entry.property_texts) entry.properties.push_back({text(name), text(value)});
    }
    library->set_thread_safe(is_thread_safe);
  }

  Weights weights_ = Weights::kAuto;
  bool is_found_ = false;
  std::string why_none_;
  std::vector<std::unique_ptr<Library>> libraries_;
  std::deque<Entry> entries_;
};

}  // namespace onnxifi_backend

BACKPLANE_PLUGIN(onnxifi_backend::Backend)
