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

TEST(Registry, MethodsThatAreNotBuiltInComeChangeAndGo) {
  Registry<Shape> registry = shapes();
  registry.extend(info("mine"), [](const Options& options) { return std::make_unique<Square>(options); });
  EXPECT_DOUBLE_EQ(registry.make("mine(side=2)")->area(), 4);
  const std::unique_ptr<Shape> made = registry.make("mine(side=2)");
  MethodInfo changed = info("mine");
  changed.options.front().name = "length";
  registry.extend(changed, [](const Options&) -> std::unique_ptr<Shape> { return nullptr; });
  EXPECT_DOUBLE_EQ(made->area(), 4);
  EXPECT_ERROR(registry.make("mine(side=2)"), kUsage, "unknown option 'side'");
  EXPECT_EQ(registry.infos().size(), 3U);
  registry.forget("mine");
  registry.forget("mine");
  EXPECT_FALSE(registry.contains("mine"));
  EXPECT_ERROR(registry.extend(info("square"), {}), kUsage, "shape 'square' is built in; choose another name");
  registry.forget("square");
  EXPECT_TRUE(registry.contains("square"));
}

}  // namespace
}  // namespace holdfast
