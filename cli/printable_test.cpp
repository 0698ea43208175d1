// SPDX-License-Identifier: Apache-2.0
#include "cli/printable.h"

#include <gtest/gtest.h>

#include "cli/table.h"

namespace backplane::cli {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

TEST(Printable, HarmlessTextIsUnchanged) {
  for (const char* text : {"", "plain text", "für Leute", "模型", "🙂 \xF4\x8F\xBF\xBD", "a\xC2\xA0z"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ControlCharactersBecomeSpaces) {
  EXPECT_EQ(printable("a\x1b[31mb\r\nc\td\x7f"), "a [31mb  c d ");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "31m\xC2\x80\xC2\x9F"),
            "a 31m  ");
  EXPECT_EQ(printable("a\xE2\x80\xA8z\xE2\x80\xA9"), "a z ");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a b");
}

TEST(Printable, DirectionsAndInvisibleCharactersAreShown) {
  for (const char* text : {"\xE2\x80\xAE", "\xE2\x80\xAA", "\xE2\x81\xA6", "\xE2\x81\xA9", "\xE2\x80\x8F", "\xD8\x9C",
                           "\xE2\x80\x8B", "\xEF\xBB\xBF", "\xF3\xA0\x81\x81"})
    EXPECT_EQ(printable(text), kReplacement);
}

TEST(Printable, BrokenUtf8IsReplacedByteForByte) {
  EXPECT_EQ(printable("a\xff z"), std::string("a") + kReplacement + " z");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            std::string(kReplacement) + "31m");  // a C1 control character as a single byte
  EXPECT_EQ(printable("\xC0\x9B"), std::string(kReplacement) + kReplacement);
  EXPECT_EQ(printable("\xE2\x80"), std::string(kReplacement) + kReplacement);
  EXPECT_EQ(printable("\xED\xA0\x80"), std::string(kReplacement) + kReplacement + kReplacement);
}

TEST(Printable, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef… (7 bytes)");
  EXPECT_EQ(printable("ab\xC3\xBC"
                      "d",
                      3),
            "ab… (5 bytes)");
  EXPECT_LT(printable(std::string(1 << 20, 'x')).size(), kPrintableBytes + 40);
  EXPECT_LT(printable(std::string(1 << 20, '\x80')).size(), 3 * kPrintableBytes + 40);
}

TEST(Printable, LinesKeepTheirFeeds) {
  EXPECT_EQ(printable_lines("a\tb\nc\x1b[2J\r\n"), "a\tb\nc [2J \n");
}

TEST(Printable, TablesPrintOnlySafeText) {
  Table table;
  table.row({"a\x1b]0;x\x07", "b\nc"});
  EXPECT_EQ(table.text(), "  a ]0;x   b c\n");
}

}  // namespace
}  // namespace backplane::cli
