// A set of features of a map, one bit each, in rows: windows are grown and sets compared a word at a time.
// Bits behind the end of a row are always 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::metric {

class FeatureSet {
 public:
  FeatureSet() = default;
  FeatureSet(std::int64_t rows, std::int64_t width) { reset(rows, width); }

  // Empty, in this shape; the memory of an earlier shape is used again.
  void reset(std::int64_t rows, std::int64_t width);

  void add(std::int64_t feature) { word_of(feature) |= bit_of(feature); }
  void remove(std::int64_t feature) { word_of(feature) &= ~bit_of(feature); }
  // Columns first to last of a row, both included.
  void add_range(std::int64_t row, std::int64_t first, std::int64_t last);
  bool contains(std::int64_t feature) const { return (words_[word_index(feature)] & bit_of(feature)) != 0; }

  std::int64_t count() const;
  // How many features both sets have; they have the same shape.
  std::int64_t common(const FeatureSet& other) const;
  std::vector<std::int64_t> members() const;  // ascending

  std::int64_t rows() const { return rows_; }
  std::int64_t width() const { return width_; }
  std::size_t words_per_row() const { return words_per_row_; }
  std::span<std::uint64_t> words() { return words_; }
  std::span<const std::uint64_t> words() const { return words_; }
  // The bits of a row's last word that stand for features.
  std::uint64_t last_word_mask() const { return ~std::uint64_t{0} >> (words_per_row_ * 64 - static_cast<std::size_t>(width_)); }

  bool operator==(const FeatureSet&) const = default;

 private:
  std::size_t word_index(std::int64_t feature) const {
    return static_cast<std::size_t>(feature / width_) * words_per_row_ + static_cast<std::size_t>(feature % width_) / 64;
  }
  std::uint64_t bit_of(std::int64_t feature) const { return std::uint64_t{1} << (feature % width_ % 64); }
  std::uint64_t& word_of(std::int64_t feature) { return words_[word_index(feature)]; }

  std::int64_t rows_ = 0, width_ = 1;
  std::size_t words_per_row_ = 1;
  std::vector<std::uint64_t> words_;
};

}  // namespace holdfast::metric
