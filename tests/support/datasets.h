// SKIP_WITHOUT("adult"): skips a test whose dataset is not on this machine.
#pragma once

#include <gtest/gtest.h>

#include "holdfast/data/dataset.h"

#define SKIP_WITHOUT(call)                                                                      \
  do {                                                                                          \
    if (::holdfast::data::datasets().make(call)->found_at({}).empty()) {                        \
      GTEST_SKIP() << "dataset " << (call) << " is not in " << ::holdfast::data::data_folder(); \
    }                                                                                           \
  } while (false)
