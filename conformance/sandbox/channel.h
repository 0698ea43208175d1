// SPDX-License-Identifier: Apache-2.0
// Communication between the harness and the process that loads a plugin. The plugin can write to every descriptor of
// its process, so each record to the harness carries a MAC over its number, its case and its content, under a key that
// the harness sends before the plugin is loaded. While the plugin runs, the key is in memory that cannot be read.
//
// This stops a plugin that writes records of its own. It does not stop one that searches the process for the key or
// patches the harness's code there: nothing in the plugin's process can. Cases that
// the harness's own process judges (Case::judge) do not depend on it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace backplane::conform {

inline constexpr uint32_t kNoCase = UINT32_MAX;  // in place of the case's number, in records that belong to no case
inline constexpr uint64_t kMaxRecord = 1 << 20;  // the largest unsolicited record, in bytes

using ChannelKey = std::array<unsigned char, 32>;
ChannelKey make_channel_key();

// A record as it is sent: its size, its MAC, its content.
std::string sealed(const ChannelKey& key, uint64_t number, uint32_t of_case, std::string_view content);
inline constexpr size_t kSealBytes = sizeof(uint64_t) + 32;

// Takes authentic records from the front of a stream.
class Unsealer {
 public:
  explicit Unsealer(const ChannelKey& key) : key_(key) {}
  void append(const char* bytes, size_t size) { buffer_.append(bytes, size); }

  enum class State { kIncomplete, kRecord, kForged };
  // After a forged record all others count as forged. A record of more than `most` bytes is forged.
  State next(uint32_t of_case, uint64_t most, std::string& out_content);

 private:
  ChannelKey key_;
  std::string buffer_;
  uint64_t number_ = 0;
  bool is_forged_ = false;
};

// The child's side, in the process that loads the plugin. Ends the process if the harness is gone. [one at a time]
class Channel {
 public:
  // Takes over both descriptors and reads the key, which the harness sends when this process's limits are set.
  Channel(int requests, int records);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  void send(uint32_t of_case, std::string_view content);
  // nullopt: the harness has no more requests for this case.
  std::optional<std::string> receive();

 private:
  int requests_, records_;
  uint64_t number_ = 0;
  void* page_;  // the key, readable while a record is sealed
};

// A request as it is sent; an empty one means that the case has no more.
std::string framed(std::string_view request);

}  // namespace backplane::conform
