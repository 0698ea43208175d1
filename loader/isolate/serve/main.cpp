// SPDX-License-Identifier: Apache-2.0
// backplane-isolated LIBRARY [SANDBOX [PATH…]]: the process in which one isolated backend runs. The loader starts it;
// control.h lists its descriptors.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backplane/host.h"
#include "discover/library.h"
#include "isolate/control.h"
#include "isolate/serve/lane.h"
#include "isolate/serve/sandbox.h"
#include "isolate/serve/server.h"

namespace {

using namespace backplane::isolate;

constexpr int kAliveMs = 1000;

// Sends a line to the loader. If it does not fit into the socket's buffer, the line is lost, because logging must not
// block a backend.
void log_line(uint32_t level, std::string_view text) {
  char packet[kMostLogBytes];
  std::memcpy(packet, &level, sizeof level);
  const size_t bytes = std::min(text.size(), sizeof packet - sizeof level);
  std::memcpy(packet + sizeof level, text.data(), bytes);
  static_cast<void>(::send(kControlSocket, packet, sizeof level + bytes, MSG_DONTWAIT | MSG_NOSIGNAL));
}

// Receives a packet from the loader, if there is one. Returns false if the socket is closed.
bool receive(ControlPacket& out, std::vector<Descriptor>& out_files) {
  iovec part{&out, sizeof out};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(kControlSocket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; i < (each->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(each) + i * sizeof number, sizeof number);
      out_files.emplace_back(number);
    }
  }
  if (got != static_cast<ssize_t>(sizeof out)) out = {};
  return got > 0;
}

Sandbox sandbox_of(std::string_view word) {
  return word == "off" ? Sandbox::kOff : word == "drivers" ? Sandbox::kDrivers : Sandbox::kStrict;
}

// The process that made the control socket. 0 if it is unknown.
pid_t loader_of_socket() {
  ucred loader{};
  socklen_t size = sizeof loader;
  return ::getsockopt(kControlSocket, SOL_SOCKET, SO_PEERCRED, &loader, &size) == 0 ? loader.pid : 0;
}

// Makes this process end with the loader, even if a signal has stopped it or the plugin has blocked its threads.
void end_with(pid_t loader) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (loader != 0 && ::getppid() != loader) _exit(0);  // the loader has already ended
}

// Ends this process and those that the plugin has started in its group.
[[noreturn]] void end_group() {
  if (::getpgrp() == ::getpid()) ::kill(0, SIGKILL);
  _exit(0);
}

[[noreturn]] void serve(Server& server) {
  const pid_t loader = getppid();
  std::vector<Lane*> lanes;  // never destroyed, because their threads run until the process ends
  for (;;) {
    pollfd watched{kControlSocket, POLLIN, 0};
    const int ready = ::poll(&watched, 1, kAliveMs);
    // Detects that the loader has ended even if its end of the socket is still open in a child of the loader.
    if (getppid() != loader) end_group();
    if (ready <= 0) continue;
    ControlPacket packet{};
    std::vector<Descriptor> files;
    if (!receive(packet, files)) {
      if (watched.revents & POLLHUP) end_group();  // the loader has ended, or no longer watches this process
      _exit(0);
    }
    if (packet.kind == ControlPacket::kCancel && packet.channel < lanes.size())
      lanes[packet.channel]->cancel(packet.call);
    if (packet.kind != ControlPacket::kNewChannel || files.size() != 2 || packet.channel != lanes.size()) continue;
    auto channel = Channel::take(std::move(files[0]), files[1]);
    if (!channel) _exit(1);
    auto* lane = new Lane(std::move(channel));
    lanes.push_back(lane);
    std::thread([lane, &server] { lane->work(server); }).detach();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || ::fcntl(kControlSocket, F_GETFD) < 0) {
    constexpr std::string_view kUsage = "usage: backplane-isolated LIBRARY [SANDBOX [PATH…]]\nThe loader runs this.\n";
    return ::write(STDERR_FILENO, kUsage.data(), kUsage.size()) < 0 ? 1 : 2;
  }
  end_with(loader_of_socket());
  ::fcntl(kControlSocket, F_SETFD, FD_CLOEXEC);
  ::fcntl(kLibraryFile, F_SETFD, FD_CLOEXEC);
  SandboxSettings settings;
  settings.library = argv[1];
  settings.limits_memory = backplane::own_sanitizer() == BP_SANITIZER_NONE;
  if (argc > 2) settings.kind = sandbox_of(argv[2]);
  for (int i = 3; i < argc; ++i) settings.readable.emplace_back(argv[i]);
  const Restrictions restrictions = enter_sandbox(settings);
  log_line(BP_LOG_DEBUG, "its process is restricted by: " + restrictions.in_force);
  if (!restrictions.lacking.empty())
    log_line(BP_LOG_WARNING, "this system cannot restrict its process by: " + restrictions.lacking);
  auto* server = new Server(argv[1], kLibraryFile);
  server->set_log(log_line);
  serve(*server);
}
