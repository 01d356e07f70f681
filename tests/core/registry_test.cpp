#include "holdfast/core/registry.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace holdfast {
namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};

struct Square final : Shape {
  explicit Square(const Options& options) : side(options.real("side")) {}
  double area() const override { return side * side; }
  double side;
};

MethodInfo info(const char* name) {
  return {.name = name, .summary = "an example", .options = {{"side", 1.0, above(0), "length"}}};
}

Registry<Shape> shapes() {
  Registry<Shape> registry("shape");
  registry.add<Square>(info("square"));
  registry.add<Square>(info("other"));
  return registry;
}

TEST(Registry, MakesAMethodFromItsCall) {
  EXPECT_DOUBLE_EQ(shapes().make("square(side=3)")->area(), 9);
  EXPECT_DOUBLE_EQ(shapes().make("square")->area(), 1);
  EXPECT_EQ(shapes().options("square(side=1.0)").canonical(), "square");
}

TEST(Registry, NamesTheKindAndTheNearestName) {
  EXPECT_ERROR(shapes().make("sqare"), kUsage, "unknown shape 'sqare' (did you mean 'square'?)");
  EXPECT_ERROR(shapes().info("circle"), kUsage, "unknown shape 'circle' (known: square, other)");
  EXPECT_FALSE(shapes().contains("circle"));
}

TEST(Registry, ListsInTheOrderOfRegistration) {
  const Registry<Shape> registry = shapes();
  ASSERT_EQ(registry.infos().size(), 2U);
  EXPECT_EQ(registry.infos()[0]->name, "square");
  EXPECT_EQ(registry.infos()[1]->name, "other");
}

TEST(Registry, ANameIsTakenOnce) {
  Registry<Shape> registry = shapes();
  EXPECT_ERROR(registry.add<Square>(info("square")), kBug, "this is a bug");
}

}  // namespace
}  // namespace holdfast
