// SPDX-License-Identifier: Apache-2.0
#include "completion.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "interrupt.h"

namespace backplane::python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSoon = std::chrono::milliseconds(10);  // during a shorter run, no check for signals is needed

}  // namespace

Completion::Completion() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_ < 0)
    throw Error(BP_IO_ERROR,
                std::string("no descriptor for the end of runs can be created: eventfd: ") + std::strerror(errno));
}

Completion::~Completion() {
  close(event_);
}

bp_run_t Completion::begin(const RunOptions& how, const Cancel* cancel) {
  if (cancel != nullptr) cancel_.emplace(*cancel);
  status_ = BP_OK;
  node_ = BP_NO_NODE;
  vendor_code_ = 0;
  flags_ = 0;
  point_ = ended_.at(++value_);
  bp_run_t run{};
  run.size = sizeof run;
  run.signals = &point_;
  run.signal_count = 1;
  if (how.timeout.count() > 0) run.deadline = deadline_at(Clock::now() + how.timeout);
  run.cancel = cancel == nullptr ? nullptr : cancel_->get();
  run.self = this;
  run.done = &done;
  under_way_ = true;
  return run;
}

void Completion::refused() {
  under_way_ = false;
  ended_.signal(value_);
}

void Completion::finish() {
  uint64_t count = 0;
  (void)!read(event_, &count, sizeof count);
  try {
    ended_.wait(value_);
  } catch (const Error&) {  // status_ holds the failure
  }
  under_way_ = false;
  cancel_.reset();
  if (status_ != BP_OK) throw Error(status_, text_, node_, vendor_code_, flags_);
}

void Completion::done(void* self, bp_status_t status, const bp_error_t* error) {
  auto* completion = static_cast<Completion*>(self);
  completion->status_ = status;
  try {
    completion->text_ = api().status_name(status);
    if (error != nullptr) {
      completion->node_ = error->node;
      completion->vendor_code_ = error->vendor_code;
      completion->flags_ = error->flags;
      if (error->text != nullptr && error->text_size != 0)
        completion->text_.assign(error->text, std::min(error->text_size, error->text_capacity));
    }
  } catch (const std::bad_alloc&) {  // only the status is reported
  }
  if (completion->over_) (void)api().semaphore_signal(completion->over_->get(), 1, nullptr, nullptr);
  const uint64_t one = 1;
  (void)!write(completion->event_, &one, sizeof one);
}

void Completion::run(Exec& exec, const RunOptions& how) {
  const Cancel cancel;  // not the caller's token, which ends other work too
  over_.emplace();
  const bp_run_t run = begin(how, &cancel);
  std::optional<nb::python_error> thrown;  // by the handler of a signal
  try {
    const UnlockedScope unlocked;
    if (is_set(how.cancel)) cancel.set();
    try {
      exec.submit(run);
    } catch (...) {
      refused();
      throw;
    }
    wait_with_signals(*over_, cancel, how.cancel, thrown);
    finish();
  } catch (const Error& error) {
    if (!thrown || error.abandoned()) throw;
  }
  if (thrown) throw nb::python_error(std::move(*thrown));
}

void run_exec(const SessionState& state, Exec& exec, const RunOptions& how, uint64_t bytes,
              std::optional<uint64_t>& quick) {
  const bool is_quick = quick && bytes <= *quick && state.is_steady();
  if (is_quick || how.stream != nullptr || !is_main_thread()) {
    const UnlockedScope unlocked;
    exec.run(how);
    return;
  }
  const Clock::time_point start = Clock::now();
  Completion().run(exec, how);
  if (Clock::now() - start < kSoon) quick = std::max(bytes, quick.value_or(0));
}

}  // namespace backplane::python
