#include "holdfast/metric/feature_set.h"

#include <algorithm>
#include <bit>

#include "holdfast/core/error.h"
#include "kernels.h"

namespace holdfast::metric {

void FeatureSet::reset(std::int64_t rows, std::int64_t width) {
  HOLDFAST_CHECK(rows >= 0 && width >= 1);
  rows_ = rows;
  width_ = width;
  words_per_row_ = (static_cast<std::size_t>(width) + 63) / 64;
  words_.assign(static_cast<std::size_t>(rows) * words_per_row_, 0);
}

void FeatureSet::add_range(std::int64_t row, std::int64_t first, std::int64_t last) {
  std::uint64_t* words = words_.data() + static_cast<std::size_t>(row) * words_per_row_;
  const auto first_word = static_cast<std::size_t>(first / 64), last_word = static_cast<std::size_t>(last / 64);
  const std::uint64_t from_first = ~std::uint64_t{0} << (first % 64), to_last = ~std::uint64_t{0} >> (63 - last % 64);
  if (first_word == last_word) {
    words[first_word] |= from_first & to_last;
    return;
  }
  words[first_word] |= from_first;
  std::fill(words + first_word + 1, words + last_word, ~std::uint64_t{0});
  words[last_word] |= to_last;
}

std::int64_t FeatureSet::count() const {
  return kernels::count_bits(words_, words_);
}

std::int64_t FeatureSet::common(const FeatureSet& other) const {
  HOLDFAST_CHECK(words_.size() == other.words_.size());
  return kernels::count_bits(words_, other.words_);
}

std::vector<std::int64_t> FeatureSet::members() const {
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(count()));
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const auto start =
        static_cast<std::int64_t>(i / words_per_row_) * width_ + static_cast<std::int64_t>(i % words_per_row_) * 64;
    for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) result.push_back(start + std::countr_zero(word));
  }
  return result;
}

}  // namespace holdfast::metric
