// SPDX-License-Identifier: Apache-2.0
#include "journal/case_name.h"

#include <gtest/gtest.h>

namespace backplane::conform {
namespace {

TEST(CaseName, AShardIsTwoNumbers) {
  const Shard shard = parse_shard("3/4294967295");
  EXPECT_EQ(shard.index, 3u);
  EXPECT_EQ(shard.count, UINT32_MAX);
  for (const char* bad : {"", "1", "/", "1/", "/2", "0/2", "3/2", "-1/2", "+1/2", " 1/2", "1/2 ", "1 /2", "1/2/3",
                          "4294967297/4294967298", "1/18446744073709551617", "1.0/2"})
    EXPECT_THROW(parse_shard(bad), Usage) << bad;
}

}  // namespace
}  // namespace backplane::conform
