// SPDX-License-Identifier: Apache-2.0
#include "discover/known.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "base/abi.h"
#include "base/folder.h"
#include "discover/child.h"
#include "discover/digest.h"
#include "discover/elf.h"
#include "discover/writers.h"
#include "host/cache.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "backplane backend 2\n";
constexpr size_t kDigest = 64;
constexpr size_t kMaxEntryBytes = 1 << 20;
constexpr uint32_t kMost = 1000;  // entries in any list
// 2 s, in nanoseconds. The clocks of file systems advance in steps of up to this length. A file that changed shortly
// before it was read may have changed again with the same time stamp.
constexpr int64_t kStep = 2'000'000'000;
constexpr std::chrono::hours kKept{30 * 24}, kNoDeviceKept{24};
constexpr size_t kMostFiles = 256;  // files of a folder whose facts count

class Writer {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// After an item that cannot be read, all further items are zero or empty, and ok() returns false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    if (ok_) bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<uint32_t>())); }
  uint32_t count() {
    const auto n = number<uint32_t>();
    ok_ = ok_ && n <= kMost;
    return ok_ ? n : 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view take(size_t bytes) {
    ok_ = ok_ && bytes <= rest_.size();
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view rest_;
  bool ok_ = true;
};

std::array<bp_text_t*, 5> texts_of(bp_device_info_t& info) {
  return {&info.name, &info.vendor, &info.driver, &info.arch, &info.pci};
}

void write_device(const KnownDevice& device, Writer& out) {
  out.number(device.plain);
  for (const std::string& text : device.texts) out.text(text);
  out.number(static_cast<uint32_t>(device.peers.size()));
  for (const uint32_t peer : device.peers) out.number(peer);
  out.number(static_cast<uint32_t>(device.properties.size()));
  for (const auto& [name, value] : device.properties) out.text(name), out.text(value);
}

KnownDevice read_device(Reader& in) {
  KnownDevice device{bp_device_info_t{}};
  const auto plain = in.number<bp_device_info_t>();
  device.plain = plain;
  // Clears pointers: those in a stored entry must never be used.
  for (bp_text_t* text : texts_of(device.plain)) *text = {};
  device.plain.size = sizeof device.plain;
  device.plain.peers = nullptr;
  device.plain.properties = nullptr;
  for (std::string& text : device.texts) text = in.text();
  for (uint32_t left = in.count(); left > 0 && in.ok(); --left) device.peers.push_back(in.number<uint32_t>());
  for (uint32_t left = in.count(); left > 0 && in.ok(); --left) {
    std::string name = in.text();
    device.properties.push_back({std::move(name), in.text()});
  }
  return device;
}

// Appends the facts of each path in a list separated by ':'. A folder's facts change when an entry is added or removed.
// `with_files` adds the facts of the folder's files, which may be overwritten, or be links to files elsewhere.
void add_paths(std::string_view list, bool with_files, std::string& state) {
  while (!list.empty()) {
    const fs::path path(list.substr(0, list.find(':')));
    list.remove_prefix(std::min(list.size(), path.native().size() + 1));
    if (path.empty()) continue;
    state += facts_of(path).text() + '\n';
    std::error_code error;
    size_t left = with_files ? kMostFiles : 0;
    if (left == 0) continue;
    for (const std::string& name : names_in(path, error)) {
      if (left-- == 0) break;
      state += name + ' ' + facts_of(path / name).text() + '\n';
    }
  }
}

// Removes entries that are a month old. Without this, entries of situations that never occur again would pile up.
void remove_old(const fs::path& folder) {
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    std::error_code gone;
    const auto written = fs::last_write_time(folder / name, gone);
    if (!gone && written < fs::file_time_type::clock::now() - kKept) fs::remove(folder / name, gone);
  }
}

fs::path entry_of(const fs::path& library, std::string_view situation) {
  const fs::path folder = cache_folder();
  return folder.empty()
             ? folder
             : folder / "backends" / blake2b_of(fmt::format("{}\n{}\n{}", own_build_id(), situation, library.string()));
}

}  // namespace

KnownDevice::KnownDevice(const bp_device_info_t& info) : plain(info) {
  const auto fields = texts_of(plain);
  for (size_t i = 0; i < fields.size(); ++i) {
    texts[i] = abi::string(*fields[i]);
    *fields[i] = {};
  }
  if (info.peers) peers.assign(info.peers, info.peers + info.peer_count);
  for (uint32_t i = 0; info.properties && i < info.property_count; ++i) {
    const bp_option_t property = abi::element(info.properties, i, info.property_stride);
    properties.push_back({abi::string(property.name), abi::string(property.value)});
  }
  plain.peers = nullptr;
  plain.properties = nullptr;
  plain.property_count = plain.peer_count = 0;
}

bp_device_info_t KnownDevice::info(std::vector<bp_option_t>& out_properties) const {
  bp_device_info_t info = plain;
  const auto fields = texts_of(info);
  for (size_t i = 0; i < fields.size(); ++i) *fields[i] = abi::text(texts[i]);
  info.peers = peers.data();
  info.peer_count = static_cast<uint32_t>(peers.size());
  out_properties.clear();
  for (const auto& [name, value] : properties) out_properties.push_back({abi::text(name), abi::text(value)});
  info.properties = out_properties.data();
  info.property_count = static_cast<uint32_t>(out_properties.size());
  info.property_stride = sizeof(bp_option_t);
  return info;
}

std::string write_known(const KnownBackend& known) {
  Writer out;
  out.number(known.facts);
  out.number(known.seen_ns);
  out.text(known.id);
  out.text(known.sha256);
  out.number(known.version);
  out.number(static_cast<uint32_t>(known.devices.size()));
  for (const KnownDevice& device : known.devices) write_device(device, out);
  out.text(known.no_device);
  return std::string(kFormat) + blake2b_of(out.bytes()) + out.bytes();
}

std::optional<KnownBackend> read_known(std::string_view bytes) {
  if (!bytes.starts_with(kFormat) || bytes.size() < kFormat.size() + kDigest) return std::nullopt;
  const std::string_view digest = bytes.substr(kFormat.size(), kDigest),
                         content = bytes.substr(kFormat.size() + kDigest);
  if (blake2b_of(content) != digest) return std::nullopt;
  Reader in(content);
  KnownBackend known;
  known.facts = in.number<FileFacts>();
  known.seen_ns = in.number<int64_t>();
  known.id = in.text();
  known.sha256 = in.text();
  known.version = in.number<uint32_t>();
  for (uint32_t left = in.count(); left > 0 && in.ok(); --left) {
    known.devices.push_back(read_device(in));
    // The index is not taken from the entry, because the plugin is called with it.
    known.devices.back().plain.index = static_cast<uint32_t>(known.devices.size() - 1);
  }
  known.no_device = in.text();
  if (!in.ok() || !in.at_end() || known.devices.empty() == known.no_device.empty()) return std::nullopt;
  return known;
}

bool have_same_devices(const KnownBackend& a, const KnownBackend& b) {
  return std::ranges::equal(a.devices, b.devices, {}, &KnownDevice::texts, &KnownDevice::texts);
}

std::string situation(const Host::Options& options) {
  std::string all;
  for (const auto& [name, value] : options) {
    all += fmt::format("{}={}\n", name, value);
    if (name == "path") add_paths(value, true, all);
  }
  for (const std::string& entry : minimal_environment()) {
    all += entry + '\n';
    const std::string_view text = entry, name = text.substr(0, text.find('='));
    if (name.ends_with("_PATH")) add_paths(text.substr(std::min(name.size() + 1, text.size())), true, all);
  }
  add_paths("/dev/dri:/etc/OpenCL/vendors", true, all);
  add_paths("/dev:/dev/nvidiactl:/dev/nvidia0:/dev/kfd:/etc/ld.so.cache", false, all);
  add_paths("/lib:/lib64:/usr/lib:/usr/lib64:/usr/local/lib", false, all);
  add_paths(fmt::format("/usr/lib/{}-linux-gnu", own_machine()), false, all);
  std::array<gid_t, 64> groups{};
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  for (int i = 0; i < count; ++i) all += fmt::format("group {}\n", groups[static_cast<size_t>(i)]);
  return blake2b_of(all);
}

std::optional<KnownBackend> recall_backend(const fs::path& library, std::string_view situation,
                                           CheckedFolders& checked) {
  const fs::path entry = entry_of(library, situation);
  File file;
  if (entry.empty() || file.open(entry) || !file.regular() || file.size() > kMaxEntryBytes ||
      check_writers(entry, file, &checked))
    return std::nullopt;
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  bytes.resize(file.read(0, bytes.data(), bytes.size()));
  auto known = read_known(bytes);
  if (!known || known->facts != facts_of(library) || known->facts.changed_ns + kStep > known->seen_ns)
    return std::nullopt;
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  if (known->devices.empty() && std::chrono::nanoseconds(known->seen_ns) + kNoDeviceKept < now) return std::nullopt;
  return known;
}

void remember_backend(const fs::path& library, std::string_view situation, const KnownBackend& known) {
  const fs::path entry = entry_of(library, situation);
  if (!entry.empty() && write_whole(entry, write_known(known))) remove_old(entry.parent_path());
}

void forget_backend(const fs::path& library, std::string_view situation) {
  std::error_code error;
  if (const fs::path entry = entry_of(library, situation); !entry.empty()) fs::remove(entry, error);
}

}  // namespace backplane
