// SPDX-License-Identifier: Apache-2.0
// The server in a backend's own process. Loads one library, keeps its objects by number, and handles the loader's
// calls: those on programs in program.cpp, on instances in instance.cpp, and coverage in coverage.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/plugin.h"
#include "discover/environment.h"
#include "discover/negotiate.h"
#include "host/container.h"
#include "host/host.h"
#include "isolate/message.h"
#include "isolate/serve/graph_lane.h"
#include "isolate/serve/lane.h"
#include "isolate/serve/memory.h"

namespace backplane::isolate {

// Objects, found by their numbers. Thread-safe.
template <class T>
class Objects {
 public:
  uint64_t add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    objects_.emplace(++last_, std::move(object));
    return last_;
  }
  std::shared_ptr<T> find(uint64_t number) const {
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> take(uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(number);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, std::shared_ptr<T>> objects_;
  uint64_t last_ = 0;
};

inline Status unreadable_request() {
  return {BP_CORRUPT, "the request cannot be read"};
}

using OptionTexts = std::vector<std::pair<std::string, std::string>>;
OptionTexts read_options(Reader& in);
std::vector<bp_option_t> abi_options(const OptionTexts& options);

struct ServedDevice {
  const PluginTables& tables;
  bp_device_t* handle = nullptr;
  uint64_t id = 0;
  bool synchronous = false;
  DeviceMemory memory;
  ~ServedDevice();
};

struct ServedProgram {
  std::shared_ptr<ServedDevice> device;
  GraphLane lane;
  std::unique_ptr<WireGraph> graph;
  std::string blob;  // the plugin borrows it
  OptionTexts options;
  bp_program_t* handle = nullptr;
  bp_program_info_t info{};
  std::vector<uint32_t> in_kinds, out_kinds;
  ~ServedProgram();
};

class ServedInstance;

class Server : public Lane::Server {
 public:
  // `library` is the descriptor of the file at `path`, which the loader has checked and hashed.
  Server(std::string path, int library);
  ~Server() override;

  // The function that receives each line of the plugin's log.
  using LogLine = void (*)(uint32_t level, std::string_view text);
  void set_log(LogLine line) { log_ = line; }

  Status serve(Lane& lane, Message& request, Writer& out) override;
  Status run(Lane& lane) override;

 private:
  Status load(Writer& out);
  Status create(Reader& in);
  Status destroy();
  Status count_devices(Writer& out) const;
  Status device_info(Reader& in, Writer& out) const;
  Status open(Reader& in, Writer& out);
  Status close(Reader& in);
  Status health(Reader& in) const;
  Status opsets(Reader& in, Writer& out) const;
  Status coverage(Lane& lane, Message& request, Writer& out) const;
  Status review(Lane& lane, Message& request, Writer& out) const;
  Status infer(Lane& lane, Message& request, Writer& out) const;
  Status make_program(Lane& lane, Message& request, Writer& out, bool from_blob);
  Status validate(Reader& in, Writer& out) const;
  Status destroy_program(Reader& in);
  Status output_extents(Lane& lane, Reader& in, Writer& out) const;
  Status serialize(Lane& lane, Reader& in, Writer& out) const;
  Status refit(Lane& lane, Reader& in) const;
  Status read_weight(Lane& lane, Reader& in, Writer& out) const;
  Status create_instance(Lane& lane, Reader& in, Writer& out);
  Status destroy_instance(Reader& in);
  Status bind(Lane& lane, Message& request);
  Status extents(Lane& lane, Reader& in);
  Status run_with_containers(Lane& lane, Reader& in, Writer& out);

  Result<std::shared_ptr<ServedDevice>> device(Reader& in) const;
  Result<std::shared_ptr<ServedProgram>> program(Reader& in) const;
  Result<std::shared_ptr<ServedInstance>> instance(Reader& in) const;

  std::string path_;
  int library_;
  LogLine log_ = nullptr;
  bool asked_ = false;  // `load` was called
  std::unique_ptr<PluginTables> tables_;
  std::shared_ptr<Services> services_;
  std::shared_ptr<Host> host_;
  bp_host_t table_{};  // the host's table, but spans are sent to the loader
  bp_backend_t* backend_ = nullptr;
  Objects<ServedDevice> devices_;
  Objects<ServedProgram> programs_;
  Objects<ServedInstance> instances_;
};

}  // namespace backplane::isolate
