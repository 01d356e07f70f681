// EXPECT_ERROR(statement, kUsage, "part of the message"): the statement throws a holdfast::Error of that kind whose one
// sentence contains the text.
#pragma once

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/core/error.h"

#define EXPECT_ERROR(statement, error_kind, text)                          \
  do {                                                                     \
    bool threw_ = false;                                                   \
    try {                                                                  \
      (void)(statement);                                                   \
    } catch (const ::holdfast::Error& error_) {                            \
      threw_ = true;                                                       \
      EXPECT_EQ(error_.kind(), ::holdfast::ErrorKind::error_kind);         \
      EXPECT_THAT(std::string(error_.what()), ::testing::HasSubstr(text)); \
      EXPECT_EQ(std::string(error_.what()).find('\n'), std::string::npos); \
    }                                                                      \
    EXPECT_TRUE(threw_) << #statement " was expected to throw";            \
  } while (false)
