// SPDX-License-Identifier: Apache-2.0
// libFuzzer: bytes that a backend's process could send to the loader, read from a channel and as a container.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/container.h"
#include "isolate/channel.h"
#include "isolate/container_wire.h"
#include "isolate/message.h"

namespace {

class AtOnce : public backplane::isolate::Check {
 public:
  backplane::Status check() override { return {BP_TIMED_OUT, "no more"}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace backplane::isolate;
  constexpr size_t kMost = 60'000;  // bytes that fit into the socket's buffer
  if (size > kMost) return 0;
  Descriptor socket, page;
  auto channel = Channel::make(socket, page);
  if (!channel.ok() || ::write(socket.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  socket = Descriptor();
  AtOnce check;
  for (;;) {
    auto message = (*channel)->receive(kMost, check);
    if (!message.ok()) break;
    Reader in(message->bytes);
    static_cast<void>(in.status());
    bp_container_t container(BP_KIND_SEQUENCE);
    Reader contents(message->bytes);
    static_cast<void>(read_container(*backplane::container_api(), &container, contents));
  }
  return 0;
}
