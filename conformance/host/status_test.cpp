// SPDX-License-Identifier: Apache-2.0
#include "host/status.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

namespace backplane::conform {
namespace {

TEST(StatusName, IsThatOfTheHeaderForEveryCode) {
  const std::regex definition("#define (BP_[A-Z_]+) (0x0[0-9a-f]{3})u.*");
  std::ifstream header(BACKPLANE_SOURCE_DIR "/api/include/backplane/status.h");
  size_t codes = 0;
  for (std::string line; std::getline(header, line);) {
    std::smatch parts;
    if (!std::regex_match(line, parts, definition) || parts.str(1).starts_with("BP_CLASS_")) continue;
    EXPECT_EQ(status_name(static_cast<bp_status_t>(std::stoul(parts.str(2), nullptr, 16))), parts.str(1));
    ++codes;
  }
  EXPECT_GE(codes, 21u);
}

TEST(StatusName, OfAnUndefinedCodeHasItsNumber) {
  EXPECT_EQ(status_name(0x0177), "the undefined status 0x177");
}

}  // namespace
}  // namespace backplane::conform
