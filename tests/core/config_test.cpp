#include "holdfast/core/config.h"

#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

constexpr const char* kText = R"toml(seed = 7
name = "first"
deep = true

[attack]
norm = "l2"
epsilon = 0.5
steps = 10
metrics = ["top_k(k=8)", "cosine"]
radii = [1, 2.5]

[[models]]
name = "plain"

[[models]]
name = "softplus"
beta = 4
)toml";

Config parse_config(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return Config::parse(text, "audit.toml", overrides);
}

TEST(Config, DepthIsLimitedBeforeAnybodyRecurses) {
  std::string dotted, arrays = "a = ", tables = "a = ";
  for (int i = 0; i < 50000; ++i) {
    dotted += "a.";
    arrays += "[";
    tables += "{a=";
  }
  for (const std::string& text : {dotted + "b = 1", "[" + dotted + "b]", arrays, tables, "x = 1\n" + dotted + "b = 1"})
    EXPECT_ERROR(parse_config(text), kUsage, "the TOML is nested more than 100 deep");
  EXPECT_ERROR(parse_config("seed = 1", {dotted + "b=1"}), kUsage, "nested more than 100 deep");
  // Dots of many numbers and of quoted text are no depth.
  std::string numbers = "radii = [";
  for (int i = 0; i < 500; ++i) numbers += "0.5, ";
  EXPECT_NO_THROW(parse_config(numbers + "1.0]"));
  EXPECT_NO_THROW(parse_config("name = \"" + std::string(500, '.') + "\" # " + std::string(500, '[')));
}

TEST(Config, NumbersMayBeQuotients) {
  const Config config = Config::parse("a = \"8/255\"\nb = [0.5, \"1/4\"]\nc = \"1/0\"\nd = \"8\"\ne = \"1/2/3\"", "c.toml");
  const ConfigTable root = config.root();
  EXPECT_DOUBLE_EQ(root.real("a", std::nullopt), 8.0 / 255);
  EXPECT_EQ(root.reals("b", std::nullopt), (std::vector<double>{0.5, 0.25}));
  EXPECT_ERROR(root.real("c", std::nullopt), kUsage, "c must be a finite number, not '1/0'");
  EXPECT_ERROR(root.real("d", std::nullopt), kUsage, "d must be a finite number, not '8'");
  EXPECT_ERROR(root.real("e", std::nullopt), kUsage, "e must be a finite number, not '1/2/3'");
}

TEST(Config, GivesWhatTheFileSays) {
  const Config config = parse_config(kText);
  const ConfigTable root = config.root();
  EXPECT_EQ(root.integer("seed", std::nullopt), 7);
  EXPECT_EQ(root.text("name", std::nullopt), "first");
  EXPECT_TRUE(root.flag("deep", std::nullopt));
  const ConfigTable attack = root.table("attack");
  EXPECT_DOUBLE_EQ(attack.real("epsilon", std::nullopt), 0.5);
  EXPECT_DOUBLE_EQ(attack.real("steps", std::nullopt), 10);  // a whole number is a number
  EXPECT_EQ(attack.text("norm", std::nullopt, one_of({"l2", "linf"})), "l2");
  EXPECT_EQ(attack.texts("metrics", std::nullopt), (std::vector<std::string>{"top_k(k=8)", "cosine"}));
  EXPECT_EQ(attack.texts("norm", std::nullopt), std::vector<std::string>{"l2"});
  EXPECT_EQ(attack.reals("radii", std::nullopt), (std::vector<double>{1, 2.5}));
  const std::vector<ConfigTable> models = root.tables("models");
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[1].text("name", std::nullopt), "softplus");
  EXPECT_EQ(models[0].integer("beta", 1), 1);
  EXPECT_EQ(models[1].integer("beta", 1), 4);
  EXPECT_EQ(models[0].text("name", std::nullopt), "plain");
  EXPECT_NO_THROW(config.finish());
}

TEST(Config, AbsentKeysAndTablesGiveTheDefaults) {
  const Config config = parse_config("");
  EXPECT_FALSE(config.root().has("seed"));
  EXPECT_EQ(config.root().integer("seed", 3), 3);
  EXPECT_EQ(config.root().table("a").table("b").text("c", "d"), "d");
  EXPECT_TRUE(config.root().tables("models").empty());
  EXPECT_TRUE(config.root().texts("metrics", std::vector<std::string>{}).empty());
  EXPECT_NO_THROW(config.finish());
}

TEST(Config, AKeyNobodyAskedForIsNamedWithItsLineAndTheNearestValidOne) {
  const Config config = parse_config("[attack]\nnorm = 'l2'\nepsilom = 1\nzeta = 1");
  const ConfigTable attack = config.root().table("attack");
  attack.real("epsilon", 1);
  attack.text("norm", "l2");
  EXPECT_ERROR(config.finish(), kUsage, "audit.toml:3: unknown key attack.epsilom (did you mean 'epsilon'?)");
}

TEST(Config, UnknownKeysAreFoundInTablesOfArraysAndTablesNobodyAskedFor) {
  const Config config = parse_config("[[models]]\nname = 'a'\n[[models]]\nname = 'b'\nbetta = 1\n");
  for (const ConfigTable& model : config.root().tables("models")) {
    model.text("name", std::nullopt);
    model.integer("beta", 1);
  }
  EXPECT_ERROR(config.finish(), kUsage, "audit.toml:5: unknown key models.1.betta (did you mean 'beta'?)");
  EXPECT_ERROR(parse_config("[x.y]\na = 1").finish(), kUsage, "unknown key x");
  EXPECT_ERROR(parse_config("\n'odd\tkey' = 1").finish(), kUsage, "audit.toml:2: unknown key \"odd\\tkey\"");
}

TEST(Config, AKeyThatWasOnlyLookedForIsKnown) {
  const Config config = parse_config("resume = true");
  EXPECT_TRUE(config.root().has("resume"));
  EXPECT_NO_THROW(config.finish());
}

TEST(Config, WrongTypesNameFileLineAndKey) {
  const Config config = parse_config(kText);
  const ConfigTable attack = config.root().table("attack");
  EXPECT_ERROR(config.root().integer("name", 1), kUsage, "audit.toml:2: name must be a whole number, not 'first'");
  EXPECT_ERROR(attack.integer("epsilon", 1), kUsage, "audit.toml:7: attack.epsilon must be a whole number, not 0.5");
  EXPECT_ERROR(attack.text("steps", ""), kUsage, "audit.toml:8: attack.steps must be a string, not 10");
  EXPECT_ERROR(attack.flag("norm", true), kUsage, "must be true or false, not 'l2'");
  EXPECT_ERROR(attack.reals("metrics", std::nullopt), kUsage,
               "audit.toml:9: attack.metrics[0] must be a finite number, not 'top_k(k=8)'");
  EXPECT_ERROR(attack.table("norm"), kUsage, "attack.norm must be a table, not 'l2'");
  EXPECT_ERROR(config.root().tables("attack"), kUsage, "attack must be an array of tables, [[attack]], not a table");
  EXPECT_ERROR(parse_config("x = nan").root().real("x", 1), kUsage, "x must be a finite number, not nan");
  EXPECT_ERROR(parse_config("models = [1]").root().tables("models"), kUsage, "audit.toml:1: models.0 must be a table, not 1");
}

TEST(Config, ValuesOutOfRangeNameTheLimit) {
  const Config config = parse_config(kText);
  const ConfigTable attack = config.root().table("attack");
  EXPECT_ERROR(attack.real("epsilon", 1, at_least(1)), kUsage, "audit.toml:7: attack.epsilon must be >= 1, not 0.5");
  EXPECT_ERROR(attack.integer("steps", 1, between(1, 9)), kUsage, "attack.steps must be 1 to 9, not 10");
  EXPECT_ERROR(attack.text("norm", "l1", one_of({"l1", "linf"})), kUsage, "attack.norm must be one of l1 | linf, not 'l2'");
  EXPECT_ERROR(attack.reals("radii", std::nullopt, between(0, 2)), kUsage, "attack.radii[1] must be 0 to 2, not 2.5");
}

TEST(Config, ARequiredKeyThatIsMissingPointsAtItsMisspelling) {
  const Config config = parse_config("[attack]\nepsilom = 1");
  EXPECT_ERROR(config.root().table("attack").real("epsilon", std::nullopt), kUsage,
               "attack.epsilon is missing (is it the unknown key epsilom at audit.toml:2?)");
  EXPECT_ERROR(config.root().text("model", std::nullopt), kUsage, "audit.toml:1: model is missing");
}

TEST(Config, BrokenTomlNamesTheLine) {
  EXPECT_ERROR(parse_config("a = 1\nb = \n"), kUsage, "audit.toml:2: ");
  EXPECT_ERROR(parse_config("a = 1\na = 2\n"), kUsage, "audit.toml:2: ");
  EXPECT_ERROR(parse_config(std::string(5000, '[')), kUsage, "audit.toml:1: ");
  EXPECT_ERROR(Config::load("no/such.toml"), kInput, "no/such.toml");
}

TEST(Config, OverridesReplaceAddAndReachIntoArraysOfTables) {
  const Config config = parse_config(kText, {"seed=9", "attack.epsilon = 2", "attack.explainer=saliency(signed=true)",
                                             "attack.metrics=[\"l2\"]", "models.1.beta=8", "new.key='quoted'", "name=two words"});
  const ConfigTable root = config.root();
  EXPECT_EQ(root.integer("seed", 0), 9);
  EXPECT_DOUBLE_EQ(root.table("attack").real("epsilon", 0), 2);
  EXPECT_EQ(root.table("attack").text("norm", ""), "l2");
  EXPECT_EQ(root.table("attack").text("explainer", ""), "saliency(signed=true)");
  EXPECT_EQ(root.table("attack").texts("metrics", std::nullopt), std::vector<std::string>{"l2"});
  EXPECT_EQ(root.tables("models")[1].integer("beta", 0), 8);
  EXPECT_EQ(root.tables("models")[1].text("name", ""), "softplus");
  EXPECT_EQ(root.table("new").text("key", ""), "quoted");
  EXPECT_EQ(root.text("name", ""), "two words");
}

TEST(Config, MistakesInOverridesNameTheOverride) {
  EXPECT_ERROR(parse_config("", {"epsilon"}), kUsage, "--set epsilon: not of the form section.key=value");
  EXPECT_ERROR(parse_config("", {"=1"}), kUsage, "--set =1: not of the form");
  EXPECT_ERROR(parse_config("", {"a=[1"}), kUsage, "--set a=[1: ");
  EXPECT_ERROR(parse_config("", {"a b=1"}), kUsage, "--set a b=1: ");
  EXPECT_ERROR(parse_config("", {"a=1\nb=2"}), kUsage, "an override is one line");
  EXPECT_ERROR(parse_config(kText, {"models.2.beta=1"}), kUsage,
               "--set models.2.beta=1: '2' is not the place of an entry; the array has 2");
  EXPECT_ERROR(parse_config(kText, {"models.0=1"}), kUsage, "is replaced only key by key");
  EXPECT_ERROR(parse_config("", {"attack.epsilon=-1"}).root().table("attack").real("epsilon", 0, at_least(0)), kUsage,
               "--set attack.epsilon=-1: attack.epsilon must be >= 0, not -1");
  EXPECT_ERROR(parse_config("", {"sed=1"}).finish(), kUsage, "--set sed=1: unknown key sed");
}

TEST(Config, ResolvedHoldsEveryKeyAskedForInOrderWithDefaults) {
  const Config config = parse_config("[attack]\nepsilon = 0.5\n[[models]]\nname = 'a'\n");
  config.root().table("attack").integer("steps", 100);
  config.root().table("attack").real("epsilon", 1);
  config.root().integer("seed", 0);
  config.root().has("resume");
  config.root().tables("models")[0].text("name", "");
  config.root().reals("radii", std::vector<double>{1, 2});
  EXPECT_EQ(config.resolved().dump(),
            R"({"attack":{"steps":100,"epsilon":0.5},"seed":0,"models":[{"name":"a"}],"radii":[1.0,2.0]})");
}

TEST(Config, KnowsItsFolderAndTheCallersMessagesTheirPlace) {
  const TempFolder folder;
  write_atomic(folder / "run.toml", "a = 1\n[b]\nc = 2\n");
  const Config config = Config::load(folder / "run.toml");
  EXPECT_EQ(config.folder(), folder.path());
  EXPECT_EQ(config.root().table("b").where("c"), (folder / "run.toml") + ":3: b.c");
  EXPECT_EQ(parse_config("").folder(), ".");
  EXPECT_EQ(parse_config("").root().where("x"), "audit.toml: x");
}

TEST(Config, TablesOutliveTheConfig) {
  const ConfigTable table = parse_config(kText).root().table("attack");
  EXPECT_EQ(table.text("norm", ""), "l2");
}

}  // namespace
}  // namespace holdfast
