// SPDX-License-Identifier: Apache-2.0
#include "base/status_text.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace backplane {
namespace {

TEST(StatusText, UnknownCodeIsNamedByItsNumber) {
  EXPECT_EQ(status_text(BP_BUSY), "BP_BUSY");
  EXPECT_EQ(status_text(12345), "status code 12345, which is newer than this loader");
  EXPECT_EQ(Status::reported(12345, nullptr).text(), status_text(12345));
  EXPECT_EQ(PluginError().status(12345, "it").text(), "it: " + status_text(12345) + " (the backend sent no text)");
}

}  // namespace
}  // namespace backplane
