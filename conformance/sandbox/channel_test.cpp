// SPDX-License-Identifier: Apache-2.0
#include "sandbox/channel.h"

#include <gtest/gtest.h>

namespace backplane::conform {
namespace {

using State = Unsealer::State;

struct Stream {
  ChannelKey key = make_channel_key();
  Unsealer records{key};
  std::string content;

  State next(const std::string& bytes, uint32_t of_case = 0, uint64_t most = kMaxRecord) {
    records.append(bytes.data(), bytes.size());
    return records.next(of_case, most, content);
  }
};

TEST(Channel, RecordsArriveInOrderAndWhole) {
  Stream stream;
  const std::string first = sealed(stream.key, 0, 0, "one"), second = sealed(stream.key, 1, 7, "");
  for (const char byte : first.substr(0, first.size() - 1))
    ASSERT_EQ(stream.next(std::string(1, byte)), State::kIncomplete);
  EXPECT_EQ(stream.next(first.substr(first.size() - 1) + second), State::kRecord);
  EXPECT_EQ(stream.content, "one");
  EXPECT_EQ(stream.next("", 7), State::kRecord);
  EXPECT_EQ(stream.content, "");
}

TEST(Channel, AChangedRecordIsForged) {
  const std::string content = "{\"state\":\"fail\"}";
  for (size_t i = 0; i < kSealBytes + content.size(); ++i) {
    Stream stream;
    std::string record = sealed(stream.key, 0, 0, content);
    record[i] = static_cast<char>(record[i] ^ 1);
    const State state = stream.next(record);
    EXPECT_TRUE(state == State::kForged || (state == State::kIncomplete && i < sizeof(uint64_t))) << i;
  }
}

TEST(Channel, RecordsOfAnotherKeyNumberOrCaseAreForged) {
  Stream stream;
  const std::string record = sealed(stream.key, 0, 3, "pass");
  EXPECT_EQ(Stream().next(record, 3), State::kForged);
  EXPECT_EQ(stream.next(record, 4), State::kForged);
  EXPECT_EQ(stream.next(sealed(stream.key, 0, 4, "pass"), 4), State::kForged) << "once forged, always forged";
  Stream again;
  EXPECT_EQ(again.next(sealed(again.key, 0, 3, "pass"), 3), State::kRecord);
  EXPECT_EQ(again.next(sealed(again.key, 0, 3, "pass"), 3), State::kForged) << "a record that is sent twice";
}

TEST(Channel, SizesAreBounded) {
  Stream stream;
  EXPECT_EQ(stream.next(sealed(stream.key, 0, 0, std::string(101, 'x')).substr(0, kSealBytes), 0, 100), State::kForged);
  Stream other;
  EXPECT_EQ(other.next(std::string(kSealBytes, '\xff')), State::kForged);
}

}  // namespace
}  // namespace backplane::conform
