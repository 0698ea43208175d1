// SPDX-License-Identifier: Apache-2.0
// A session's run state: instances of its programs, the memory between them, what the framework bound. What bp_exec_t
// is.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "run/framework_stream.h"
#include "run/plan.h"
#include "run/route.h"
#include "run/runner.h"
#include "run/worker.h"
#include "session/session.h"

namespace backplane {

class Exec {
 public:
  static Result<std::unique_ptr<Exec>> create(const std::shared_ptr<const Session>& session);
  ~Exec();

  // Slots as in plugin.h. Extents may change on every run; what follows from them is planned again only when they do.
  Status bind(uint32_t slot, const bp_tensor_t& tensor);
  Status bind_container(uint32_t slot, bp_container_t* container);
  Status unbind(uint32_t slot);
  // All of them or none.
  Status extents(const bp_slot_extents_t* slots, uint32_t count, uint32_t stride);
  Status symbol(uint32_t symbol, int64_t extent);
  // Runs and waits, or puts the run into the framework's stream. `done` is called and the signals advance only where it
  // succeeds. `run` may be null.
  Status run(const bp_run_t* run);
  // Runs on the exec's own thread, started with the first call. Once accepted, `done` and the signals report the end.
  Status submit(const bp_run_t* run);
  Status output(uint32_t index, bp_tensor_t& out);
  Status output_container(uint32_t index, bp_container_t*& out);

 private:
  // What the framework bound to a slot.
  struct Binding {
    bool is = false;
    bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
    std::vector<int64_t> extents;
    bp_buffer_t buffer{};
    uint64_t serial = 0;
    Device* device = nullptr;  // in whose memory it lies; null: the host's
    bp_container_t* container = nullptr;
    Home home() const { return {device, device ? buffer.space : 0}; }
  };

  explicit Exec(std::shared_ptr<const Session> session) : session_(std::move(session)) {}
  Status make_route();
  void drop_route();
  void keep_route();     // for good: a device which did not come back may still touch it
  Device* hung() const;  // a device of the route that was given up, or null
  Result<Binding*> binding(uint32_t slot);
  model::ValueId value_of(uint32_t slot) const;
  Status check(model::ValueId value, bp_dtype_t dtype, uint32_t rank, const int64_t* extents) const;
  std::string slot_name(uint32_t slot) const;
  Status check_extents(uint32_t slot, uint32_t rank, const int64_t* extents);
  void set_extents(uint32_t slot, std::span<const int64_t> extents);

  Status check_symbols() const;
  void take_bindings();  // into the edges
  Status prepare();      // route and plan for what is bound
  void follow();         // takes up the session that is true now
  Status attempt(const bp_run_t& options);
  Status execute(const bp_run_t& options);  // waits, runs
  Status put_into(const bp_run_t& options);
  void settle();  // waits for the stream that runs were put into
  static void report(const bp_run_t& options, const Status& status);
  static void signal(std::span<const bp_point_t> points, const Status& status);
  void release();  // the run is over: another may come

  std::shared_ptr<const Session> session_;
  std::vector<Binding> inputs_, outputs_;
  std::unique_ptr<Route> route_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Runner> runner_;
  bool planned_ = false;
  bool ran_ = false;
  bool lost_ = false;
  std::shared_ptr<FrameworkStream> stream_;  // that may still hold a run; null: none does
  std::atomic<bool> busy_{false};
  std::vector<bp_point_t> submitted_;  // the points of the run in flight: those that it waits for, then its signals
  std::unique_ptr<Worker> worker_;
};

}  // namespace backplane
