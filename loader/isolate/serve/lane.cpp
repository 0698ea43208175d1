// SPDX-License-Identifier: Apache-2.0
#include "isolate/serve/lane.h"

#include <unistd.h>

#include <new>

namespace backplane::isolate {
namespace {

// Waits indefinitely: the process exits when the loader closes its end of the control socket.
class Patient : public Check {
 public:
  Status check() override { return {}; }
};
Patient patient;

constexpr uint32_t kLongSliceUs = 60'000'000;

}  // namespace

void Lane::work(Server& server) {
  for (;;) {
    static_cast<void>(channel_->await(patient, kLongSliceUs));
    const Turn turn = channel_->turn();
    {
      const std::lock_guard lock(cancel_mutex_);
      token_.follow(nullptr);
      call_ = channel_->page().call.load(std::memory_order_relaxed);
      if (channel_->page().cancelled.load(std::memory_order_relaxed)) token_.set();
    }
    Message request;
    if (turn == Turn::kMessage) {
      auto received = channel_->receive(kMostRequest, patient);
      if (!received.ok()) _exit(1);  // the loader has ended, or the other side is not the loader
      request = received.take();
    }
    {
      const std::lock_guard lock(mutex_);
      answering_ = ++answered_;
    }
    Writer out;
    Status status;
    try {
      status = turn == Turn::kRun ? server.run(*this) : server.serve(*this, request, out);
    } catch (const std::bad_alloc&) {
      status = {BP_RESOURCE_EXHAUSTED, "the backend's process is out of memory"};
    } catch (const std::exception& thrown) {
      status = {BP_INTERNAL, thrown.what()};
    }
    {
      const std::lock_guard lock(mutex_);
      answering_ = 0;
    }
    {
      const std::lock_guard lock(cancel_mutex_);
      call_ = 0;
    }
    if (turn == Turn::kRun && status.ok()) {
      channel_->pass(Turn::kDone);
      continue;
    }
    constexpr uint64_t kMost = kMostReply - 4096;
    if (status.ok() && out.bytes().size() > kMost)
      status = {BP_UNSUPPORTED, "the reply has " + std::to_string(out.bytes().size()) +
                                    " bytes; the limit for an isolated backend is " + std::to_string(kMost)};
    Writer reply;
    reply.status(status);
    channel_->pass(Turn::kMessage);
    if (!channel_->send(Operation::kReply, reply.take() + (status.ok() ? out.take() : std::string()), {}, patient).ok())
      _exit(1);
  }
}

void Lane::cancel(uint64_t call) {
  const std::lock_guard lock(cancel_mutex_);
  if (call != 0 && call == call_) token_.set();
}

Result<Message> Lane::ask(uint64_t call, Operation question, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  if (call == 0 || call != answering_)
    return Status(BP_BAD_STATE, "the loader answers requests only during a call that it waits for");
  channel_->pass(Turn::kMessage);
  BP_TRY(channel_->send(question, bytes, {}, patient));
  BP_TRY(channel_->await(patient, kLongSliceUs));
  BP_ASSIGN(Message answer, channel_->receive(kMostRequest, patient));
  Reader in(answer.bytes);
  Status status = in.status();
  if (!in.ok()) return Status(BP_CORRUPT, "the loader's answer is damaged");
  BP_TRY(std::move(status));
  answer.bytes.erase(0, sizeof(bp_status_t));
  return answer;
}

}  // namespace backplane::isolate
