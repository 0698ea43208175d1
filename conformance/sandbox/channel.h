// SPDX-License-Identifier: Apache-2.0
// Communication between the harness and the process that loads a plugin. The plugin can write to every descriptor of
// its process. Each record to the harness therefore carries a MAC of its number, its case and its content. The harness
// sends the key before the plugin is loaded. While the plugin runs, the key is in memory that cannot be read.
//
// The MAC exposes records that a plugin writes itself. Nothing inside the plugin's process could stop a plugin that
// searches the process for the key or patches the harness's code there. Cases that the harness's own process judges
// (Case::judge) do not depend on this protection.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace backplane::conform {

inline constexpr uint32_t kNoCase = UINT32_MAX;  // replaces the number of the case in records that belong to no case
inline constexpr uint64_t kMaxRecord = 1 << 20;  // bytes of a record, unless it replies to a request with another limit

using ChannelKey = std::array<unsigned char, 32>;
ChannelKey make_channel_key();

// Formats a record as it is sent: size, MAC, content.
std::string sealed(const ChannelKey& key, uint64_t number, uint32_t of_case, std::string_view content);
inline constexpr size_t kSealBytes = sizeof(uint64_t) + 32;

// Takes records from the front of a stream and verifies that they are authentic.
class Unsealer {
 public:
  explicit Unsealer(const ChannelKey& key) : key_(key) {}
  void append(const char* bytes, size_t size) { buffer_.append(bytes, size); }

  enum class State { kIncomplete, kRecord, kForged };
  // A record of more than `most` bytes counts as forged. So do all records after a forged one.
  State next(uint32_t of_case, uint64_t most, std::string& out_content);

 private:
  ChannelKey key_;
  std::string buffer_;
  uint64_t number_ = 0;
  bool is_forged_ = false;
};

// The end of the channel in the process that loads the plugin. Ends the process if the harness is gone. [one at a time]
class Channel {
 public:
  // Takes ownership of both descriptors and reads the key. The harness sends the key once it has set the limits of this
  // process.
  Channel(int requests, int records);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  void send(uint32_t of_case, std::string_view content);
  // Returns nullopt if the harness has no more requests for this case.
  std::optional<std::string> receive();

 private:
  int requests_, records_;
  uint64_t number_ = 0;
  void* page_;  // holds the key; readable only while a record is sealed
};

// Formats a request as it is sent. An empty request means that the case has no more requests.
std::string framed(std::string_view request);

}  // namespace backplane::conform
