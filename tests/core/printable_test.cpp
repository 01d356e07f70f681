#include "holdfast/core/printable.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

const std::string kGone = "\xef\xbf\xbd";

TEST(Printable, OrdinaryTextStaysAsItIs) {
  for (const std::string text : {"", "income", "\xc3\xa9t\xc3\xa9", "\xe5\xb9\xb4\xe9\xbd\xa2", "\xf0\x9f\x99\x82"}) {
    EXPECT_EQ(valid_utf8(text), text);
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatIsNoUtf8IsReplacedByteByByte) {
  EXPECT_EQ(valid_utf8("a\xff\x62"), "a" + kGone + "b");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), kGone + kGone) << "a longer form than needed";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), kGone + kGone + kGone) << "half of a pair";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), kGone + kGone + kGone + kGone) << "beyond the last character";
  EXPECT_EQ(valid_utf8("\xe5\xb9"), kGone + kGone) << "cut short";
}

TEST(Printable, TheFirstWrongByteIsFound) {
  EXPECT_EQ(first_invalid_utf8("caf\xc3\xa9"), 5U);
  EXPECT_EQ(first_invalid_utf8("caf\xe9 au lait"), 3U);
}

TEST(Printable, WhatATerminalOrAPageWouldObeyIsReplaced) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a" + kGone + "[31mb");
  EXPECT_EQ(printable("a\nb"), "a" + kGone + "b");
  EXPECT_EQ(printable("a\n\tb\r", /*lines=*/true), "a\n\tb" + kGone);
  EXPECT_EQ(printable("\xe2\x80\xa8|\xe2\x80\xae|\xc2\x9b|\xef\xbf\xbf"), kGone + "|" + kGone + "|" + kGone + "|" + kGone);
}

}  // namespace
}  // namespace holdfast
