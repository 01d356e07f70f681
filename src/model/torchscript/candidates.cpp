// What shape of samples a script may take. A traced file says so; for the others the first layer gives the channels or the
// length, and sizes of images are tried: whether one goes through the whole graph is cheap to see without data.
#include <array>
#include <cmath>

#include "import.h"

namespace holdfast::model::torchscript {
namespace {

using Shape = std::vector<std::int64_t>;
using JitNode = torch::jit::Node;

constexpr std::array<std::int64_t, 10> kUsualSides = {32, 28, 224, 64, 8, 16, 48, 96, 128, 256};
constexpr std::int64_t kLargestSide = 300;

std::optional<at::Tensor> constant_input(const JitNode* node, const char* argument) {
  if (!node->hasNamedInput(argument)) return std::nullopt;
  const auto value = torch::jit::toIValue(node->namedInput(argument));
  if (!value || !value->isTensor()) return std::nullopt;
  return value->toTensor();
}

std::int64_t groups_of(const JitNode* node) {
  const auto value = node->hasNamedInput("groups") ? torch::jit::toIValue(node->namedInput("groups")) : std::nullopt;
  return value && value->isInt() ? value->toInt() : 1;
}

void add_images(std::vector<Shape>& shapes, const Shape& before) {
  const auto add = [&](std::int64_t side) {
    Shape shape = before;
    shape.insert(shape.end(), {side, side});
    shapes.push_back(shape);
  };
  for (const std::int64_t side : kUsualSides) add(side);
  for (std::int64_t side = 1; side <= kLargestSide; ++side) {
    if (std::find(kUsualSides.begin(), kUsualSides.end(), side) == kUsualSides.end()) add(side);
  }
}

// Vectors of this length, and images and pairs that have as many elements.
void add_vectors(std::vector<Shape>& shapes, std::int64_t length) {
  shapes.push_back({length});
  for (const std::int64_t channels : {1, 3}) {
    const auto side =
        static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(length) / static_cast<double>(channels))));
    if (side > 1 && channels * side * side == length) shapes.push_back({channels, side, side});
  }
  shapes.push_back({2, length});
}

// The shapes that the first layer with weights allows; empty when the node is none.
std::vector<Shape> shapes_for(const JitNode* node) {
  std::vector<Shape> shapes;
  const std::string name = node->kind().toQualString();
  if (name == "aten::conv2d" || name.starts_with("aten::_convolution") || name == "aten::convolution") {
    const auto weight = constant_input(node, "weight");
    if (!weight || weight->dim() != 4) return {};
    const std::int64_t channels = weight->size(1) * groups_of(node);
    add_images(shapes, {channels});
    add_images(shapes, {2, channels});
    if (channels == 1) add_images(shapes, {});
  } else if (name == "aten::linear") {
    if (const auto weight = constant_input(node, "weight")) add_vectors(shapes, weight->size(-1));
  } else if (name == "aten::addmm" || name == "aten::mm" || name == "aten::matmul") {
    const auto right = constant_input(node, name == "aten::matmul" ? "other" : "mat2");
    if (right && right->dim() == 2) add_vectors(shapes, right->size(0));
  } else if (name == "aten::batch_norm") {
    const auto mean = constant_input(node, "running_mean");
    if (mean) {
      add_vectors(shapes, mean->numel());
      add_images(shapes, {mean->numel()});
    }
  }
  return shapes;
}

}  // namespace

std::vector<Shape> candidate_shapes(const Script& script) {
  if (script.traced_shape) return {*script.traced_shape};
  std::vector<Shape> shapes;
  const auto graph = script.graph();
  visit_nodes(graph->block(), [&](JitNode* node) {
    if (shapes.empty()) shapes = shapes_for(node);
  });
  return shapes;
}

}  // namespace holdfast::model::torchscript
