// What a sample is made of: one or two sides, each a vector, a grid of pixels with channels, the edges of a graph, or steps in
// time.
// A layout travels with every map, so that a pair of graphs is never mistaken for channels.
//
//     kind      shape of one side     features of one side
//     vector    [length]              length
//     grid      [channels, H, W]      H * W: channels are summed
//     graph     [nodes*(nodes-1)/2]   the same: one edge each, row-major strict upper triangle of the adjacency
//     sequence  [length, width]       length: the numbers of a step are summed; or length * width, each number by itself
//     tokens    [length, width]       length: a token's embedding is summed
//
// A sample may carry context: numbers that the model reads, but that are neither explained nor perturbed (an attention mask, a
// second table). They come last: `context` more elements of a vector, channels of a grid, or numbers of each step. The last one
// of each token says whether the token is ranked (1), or padding or special (0).
//
// A sample with two sides has shape [2, side...] and twice the features, side after side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::data {

struct Layout {
  enum class Kind { kVector, kGrid, kGraph, kSequence, kTokens };

  static Layout vector(std::int64_t length, std::int64_t sides = 1);
  static Layout grid(std::int64_t channels, std::int64_t height, std::int64_t width, std::int64_t sides = 1);
  static Layout graph(std::int64_t nodes, std::int64_t sides = 1);
  static Layout sequence(std::int64_t length, std::int64_t width, bool by_step = true);
  static Layout tokens(std::int64_t length, std::int64_t width, std::int64_t context = 1);
  // The same with so many numbers of context.
  Layout with_context(std::int64_t numbers) const;
  // What a sample of this shape must be when nothing else is known: [n] a vector, [H,W] and [C,H,W] a grid.
  // Throws kInput for anything else: it needs a schema.
  static Layout guess(std::span<const std::int64_t> sample_shape);

  Kind kind = Kind::kVector;
  std::int64_t sides = 1;
  std::int64_t channels = 1;  // grids only
  std::int64_t height = 0;    // grids only
  std::int64_t width = 0;     // grids only
  std::int64_t length = 0;    // vectors: length; graphs: nodes; sequences: steps
  std::int64_t stride = 1;    // sequences and tokens: numbers of a step, without context
  bool by_step = true;        // sequences: a feature is a step, not a number of one
  std::int64_t context = 0;   // no graphs

  std::vector<std::int64_t> sample_shape() const;
  std::int64_t inputs() const;         // elements of a sample
  std::int64_t features() const;       // elements of a folded map
  std::int64_t side_features() const;  // features of one side
  std::string describe() const;        // "3 x 32 x 32 image", "pair of graphs with 111 nodes"
  bool is_sequence() const { return kind == Kind::kSequence || kind == Kind::kTokens; }
  // Whether the elements of a side are its channels, one after the other, each with one number a feature.
  bool is_plain() const { return !is_sequence() && context == 0; }
  // Of each element of a sample the feature that it belongs to; -1: context.
  std::vector<std::int64_t> element_features() const;

  bool operator==(const Layout&) const = default;
};

// Edge (i, j), i < j, of a graph with `nodes` nodes <-> its position in the strict upper triangle, row by row.
std::int64_t edge_index(std::int64_t nodes, std::int64_t i, std::int64_t j);
std::pair<std::int64_t, std::int64_t> edge_nodes(std::int64_t nodes, std::int64_t edge);

// The map that metrics see: magnitudes, channels summed, features() values. `map` has inputs() values, or features()
// values when it was folded before.
std::vector<double> fold(const Layout& layout, std::span<const float> map);
std::vector<double> fold(const Layout& layout, std::span<const double> map);
// Folds any number of maps, one after the other, into memory of the caller: features() values each.
void fold_into(const Layout& layout, std::span<const float> maps, std::span<double> folded);
void fold_into(const Layout& layout, std::span<const double> maps, std::span<double> folded);

}  // namespace holdfast::data
