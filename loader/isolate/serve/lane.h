// SPDX-License-Identifier: Apache-2.0
// The backend's end of one channel. Handles the loader's calls one at a time, and sends the plugin's requests to
// the loader during them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/cancel.h"
#include "isolate/channel.h"
#include "isolate/message.h"

namespace backplane::isolate {

class Lane {
 public:
  explicit Lane(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}

  // Handles calls. `out` receives the bytes that follow the status in the reply.
  class Server {
   public:
    virtual ~Server() = default;
    virtual Status serve(Lane& lane, Message& request, Writer& out) = 0;
    virtual Status run(Lane& lane) = 0;  // the run's parameters are in the page
  };
  // Serves calls until the process ends.
  [[noreturn]] void work(Server& server);

  const Page& page() const { return channel_->page(); }
  // The cancel token of the current call. `cancel` sets it if `call` is still the current call.
  const bp_cancel_t* token() const { return &token_; }
  void cancel(uint64_t call);

  // The number that this process gave the current call. Only for the thread that handles the call.
  uint64_t call() const { return answering_; }
  // Sends the loader a request from any thread. BP_BAD_STATE unless `call` is the current call.
  Result<Message> ask(uint64_t call, Operation question, const std::string& bytes);

 private:
  std::unique_ptr<Channel> channel_;
  std::mutex mutex_;        // allows one request at a time
  uint64_t answering_ = 0;  // the number of the current call in this process; 0: none
  uint64_t answered_ = 0;   // calls so far
  std::mutex cancel_mutex_;
  uint64_t call_ = 0;  // the number that the loader gave the current call; 0: none
  bp_cancel_t token_;
};

}  // namespace backplane::isolate
