#include "holdfast/core/method.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace holdfast {
namespace {

MethodInfo example() {
  return {.name = "er",
          .summary = "an example",
          .options = {{"steps", 100, at_least(1), "iterations"},
                      {"step_size", 0.01, above(0), "length of a step"},
                      {"pairs", "all", one_of({"all", "next-k"}), "which pairs"},
                      {"signed", false, anything(), "keep signs"}},
          .presets = {{"tabular", {{"steps", std::int64_t{1000}}, {"step_size", 1e-3}}, "as published"}}};
}

Options options(const std::string& text) {
  return Options(example(), parse_method_call(text));
}

TEST(MethodCall, ParsesNamesAndOptions) {
  const MethodCall call = parse_method_call(" er( steps=100 , pairs=next-k ) ");
  EXPECT_EQ(call.name, "er");
  ASSERT_EQ(call.options.size(), 2U);
  EXPECT_EQ(call.options[1].first, "pairs");
  EXPECT_EQ(call.options[1].second, "next-k");
}

TEST(MethodCall, RefusesWhatIsNotACall) {
  EXPECT_ERROR(parse_method_call(""), kUsage, "does not start with a name");
  EXPECT_ERROR(parse_method_call("er(steps=1"), kUsage, "not closed");
  EXPECT_ERROR(parse_method_call("er(steps)"), kUsage, "'steps' is not of the form option=value");
  EXPECT_ERROR(parse_method_call("er(steps=)"), kUsage, "option steps has no value");
  EXPECT_ERROR(parse_method_call("er(steps=1,steps=2)"), kUsage, "given twice");
  EXPECT_ERROR(parse_method_call("er(steps=f(x))"), kUsage, "'f(x)': 'x' is not of the form option=value");
  for (const char* text : {"er(a=b=c)", "er(a=(b)", "er(a=b))", "er(a=(b),c=1)", "er(a=f(x=1)y)", "er(a=f(x=g(y=1)))",
                           "er(a=(x=1))", "er(a=b),c=d)", "er(a=f(x=1),b=c))"}) {
    EXPECT_ERROR(parse_method_call(text), kUsage, "has one of ( ) =");
  }
}

TEST(MethodCall, AValueMayBeACallInItsTurn) {
  const MethodCall call = parse_method_call("pairs( of = csv( path=t2.csv , label=y ), count=8, by=f() )");
  ASSERT_EQ(call.options.size(), 3U);
  EXPECT_EQ(call.options[0].second, "csv(path=t2.csv,label=y)");
  EXPECT_EQ(call.options[1].second, "8");
  EXPECT_EQ(call.options[2].second, "f");
  EXPECT_ERROR(parse_method_call("pairs(of=csv(path=))"), kUsage, "'csv(path=)': option path has no value");
  EXPECT_ERROR(options("er(steps=f(x=1))"), kUsage, "steps must be a whole number");
  const MethodInfo info{.name = "pairs", .summary = "an example", .options = {{"of", "mnist", anything(), "the dataset"}}};
  const Options first(info, parse_method_call("pairs(of=csv( path=a.csv,label=y ))"));
  EXPECT_EQ(first.canonical(), "pairs(of=csv(path=a.csv,label=y))");
  EXPECT_EQ(Options(info, parse_method_call(first.canonical())).canonical(), first.canonical());
}

TEST(Options, DefaultsPresetsAndCallsInThatOrder) {
  EXPECT_EQ(options("er").integer("steps"), 100);
  EXPECT_EQ(options("er(preset=tabular)").integer("steps"), 1000);
  EXPECT_EQ(options("er(steps=7,preset=tabular)").integer("steps"), 7);
  EXPECT_DOUBLE_EQ(options("er(steps=7,preset=tabular)").real("step_size"), 1e-3);
  EXPECT_TRUE(options("er(preset=tabular)").given("steps"));
  EXPECT_FALSE(options("er").given("steps"));
}

TEST(Options, CanonicalFormIsTheSameForCallsThatMeanTheSame) {
  EXPECT_EQ(options("er(step_size=0.010,steps=5)").canonical(), options("er( steps=5 )").canonical());
  EXPECT_EQ(options("er(steps=100)").canonical(), "er");
  EXPECT_EQ(options("er(preset=tabular)").canonical(), "er(steps=1000,step_size=0.001)");
  EXPECT_EQ(options("er").complete(), "er(steps=100,step_size=0.01,pairs=all,signed=false)");
}

TEST(Options, MistakesNameTheValueAndTheLimit) {
  EXPECT_ERROR(options("er(stepz=1)"), kUsage, "unknown option 'stepz' (did you mean 'steps'?)");
  EXPECT_ERROR(options("er(steps=0)"), kUsage, "er(steps=0): steps must be >= 1");
  EXPECT_ERROR(options("er(step_size=0)"), kUsage, "must be > 0");
  EXPECT_ERROR(options("er(steps=1.5)"), kUsage, "must be a whole number");
  EXPECT_ERROR(options("er(step_size=nan)"), kUsage, "must be a number");
  EXPECT_ERROR(options("er(pairs=some)"), kUsage, "must be one of all | next-k");
  EXPECT_ERROR(options("er(signed=yes)"), kUsage, "must be true or false");
  EXPECT_ERROR(options("er(preset=table)"), kUsage, "unknown preset 'table'");
}

TEST(Options, NumbersMayBeWrittenWithoutAPointButNotTheReverse) {
  EXPECT_DOUBLE_EQ(options("er(step_size=2)").real("step_size"), 2);
  EXPECT_ERROR(options("er(steps=2.0)"), kUsage, "must be a whole number");
  EXPECT_ERROR(options("er(steps=99999999999999999999)"), kUsage, "must be a whole number");
  EXPECT_ERROR(options("er(step_size=inf)"), kUsage, "must be a number");
  EXPECT_ERROR(options("er(step_size=1e999)"), kUsage, "must be a number");
}

TEST(Options, AMethodWithoutOptionsOrPresetsSaysSo) {
  const MethodInfo bare{.name = "cosine", .summary = "an example"};
  EXPECT_EQ(Options(bare, parse_method_call("cosine()")).complete(), "cosine");
  EXPECT_ERROR(Options(bare, parse_method_call("cosine(k=1)")), kUsage, "cosine: takes no options, got 'k'");
  EXPECT_ERROR(Options(bare, parse_method_call("cosine(preset=x)")), kUsage, "takes no options, got 'preset'");
}

TEST(Options, TheCanonicalFormReadsBackToTheSameOptions) {
  for (const char* text :
       {"er", "er(steps=3)", "er(step_size=1e-7,signed=1)", "er(preset=tabular,pairs=next-k)", "er(step_size=0.1)"}) {
    const Options first = options(text);
    EXPECT_EQ(options(first.canonical()).complete(), first.complete()) << text;
    EXPECT_EQ(options(first.complete()).canonical(), first.canonical()) << text;
  }
}

TEST(Options, AskingForWhatWasNotDeclaredIsABug) {
  EXPECT_ERROR(options("er").integer("layers"), kBug, "this is a bug");
}

TEST(Ranges, AreWrittenAndHeldAgainstValues) {
  EXPECT_EQ(to_string(at_least(1)), ">= 1");
  EXPECT_EQ(to_string(above(0)), "> 0");
  EXPECT_EQ(to_string(between(0, 1)), "0 to 1");
  EXPECT_EQ(to_string(anything()), "");
  EXPECT_TRUE(in_range(1.0, between(0, 1)));
  EXPECT_FALSE(in_range(1.0000001, between(0, 1)));
  EXPECT_FALSE(in_range(0.0, above(0)));
  EXPECT_FALSE(in_range(std::int64_t{0}, at_least(1)));
  EXPECT_FALSE(in_range(std::string("l3"), one_of({"l1", "l2"})));
}

TEST(Suggestion, NamesTheNearestOrElseAll) {
  EXPECT_EQ(nearest("saliancy", {"lrp", "saliency"}), "saliency");
  EXPECT_EQ(nearest("xyzzy", {"lrp", "saliency"}), "");
  EXPECT_EQ(suggestion("xyzzy", {"lrp", "saliency"}), " (known: lrp, saliency)");
  EXPECT_EQ(suggestion("xyzzy", {}), "");
}

TEST(Sizes, AreWrittenWithCrosses) {
  EXPECT_EQ(parse_sizes("64x32", "hidden"), (std::vector<std::int64_t>{64, 32}));
  EXPECT_TRUE(parse_sizes("", "hidden").empty());
  EXPECT_ERROR(parse_sizes("64x", "hidden"), kUsage, "hidden");
  EXPECT_ERROR(parse_sizes("0", "hidden"), kUsage, "hidden");
}

}  // namespace
}  // namespace holdfast
