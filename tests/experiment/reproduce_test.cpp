// The framework of experiments: what is finished is kept, by its key, and read back as it was.
#include "holdfast/experiment/reproduce.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../../src/experiment/paper/plan.h"
#include "holdfast/core/files.h"
#include "holdfast/core/folder_lock.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/reproduce_statistics.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::experiment {
namespace {

ExperimentContext context_in(const std::string& folder, int threads = 2) {
  return {Scale::kQuick, 0, threads, at::kCPU, {.run = folder, .models = folder + "/models", .cells = folder + "/cells"}};
}

TEST(ExperimentContext, OnlyTakesDatasetsThatBeginSo) {
  const TempFolder folder;
  const ExperimentContext all = context_in(folder.path());
  const ExperimentContext some{Scale::kQuick, 0, 1, at::kCPU, {}, {"adult", "COMPAS, projected"}};
  EXPECT_TRUE(all.wants("Bank, one-hot"));
  EXPECT_TRUE(some.wants("Adult, one-hot"));
  EXPECT_TRUE(some.wants("COMPAS, projected"));
  EXPECT_FALSE(some.wants("COMPAS, one-hot"));
  EXPECT_FALSE(some.wants("ADHD"));
  const ExperimentContext spelt{Scale::kQuick, 0, 1, at::kCPU, {}, {"CIFAR-10", "fashion mnist"}};
  for (const char* same : {"cifar10", "CIFAR-10 ResNet-20, natural", "cifar_10"}) EXPECT_TRUE(spelt.wants(same)) << same;
  EXPECT_TRUE(spelt.wants("fashion_mnist"));
  for (const char* other : {"cifar1", "mnist"}) EXPECT_FALSE(spelt.wants(other)) << other;
  EXPECT_EQ(some.notes().size(), 1U);
}

TEST(RunExperiment, RefusesOnlyDatasetsThatItDoesNotHave) {
  const TempFolder folder;
  ReproduceOptions options{.experiment = "r2et/bounds", .threads = 1, .folder = folder / "run", .only = {"nonsense"}};
  EXPECT_ERROR(run_experiment(options), kUsage, "begins so");
  EXPECT_FALSE(folder_exists(options.folder)) << "the right name may be given with the same folder";
  options.may_be_empty = true;
  EXPECT_TRUE(run_experiment(options).is_null());
  EXPECT_FALSE(folder_exists(options.folder));
}

TEST(ExperimentContext, AFinishedCellIsNotComputedAgain) {
  const TempFolder folder;
  std::atomic<int> calls = 0;
  const auto job = [&](const std::string& key, double number) {
    return Job<Json>{key, [&calls, number] {
                       ++calls;
                       return Json{{"number", number}};
                     }};
  };
  ExperimentContext first = context_in(folder.path());
  first.compute<Json>("cells", {job("a", 1), job("b", 0.1)});
  EXPECT_EQ(calls, 2);
  // Another process, with one more cell and the old ones in another order.
  ExperimentContext second = context_in(folder.path());
  const std::vector<Json> results = second.compute<Json>("cells", {job("b", 7), job("c", 3), job("a", 7), job("c", 3)});
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(results[0].at("number"), 0.1);
  EXPECT_EQ(results[1].at("number"), 3);
  EXPECT_EQ(results[2].at("number"), 1);
  EXPECT_EQ(results[3].at("number"), 3);
  EXPECT_EQ(second.facts().at("cells"), (Json{{"computed", 1}, {"kept", 2}}));
  // All work behind the three, by whichever run.
  const Json work = second.facts().at("work");
  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(work[0].at("cells"), 3);
  EXPECT_EQ(work[0].at("networks"), 0);
  EXPECT_GT(work[0].at("seconds"), 0);
}

TEST(ExperimentContext, ACellReadBackIsTheCellComputed) {
  const TempFolder folder;
  const Job<Json> job{"numbers", [] { return Json{1.0 / 3, std::nan(""), 1e-300}; }};
  const std::string computed = context_in(folder.path()).compute<Json>("numbers", {job})[0].dump();
  EXPECT_EQ(computed, context_in(folder.path()).compute<Json>("numbers", {job})[0].dump());
  EXPECT_TRUE(std::isnan(numbers_or_nan(Json::parse(computed))[1]));
}

TEST(ExperimentContext, AFailureStopsTheRunAndKeepsWhatWasDone) {
  const TempFolder folder;
  const Job<Json> good{"good", [] { return Json(1); }};
  const Job<Json> bad{"bad", []() -> Json { failure("the disk is full"); }};
  ExperimentContext context = context_in(folder.path(), 1);
  EXPECT_ERROR(context.compute<Json>("cells", {good, bad}), kFailure, "the disk is full");
  ExperimentContext next = context_in(folder.path(), 1);
  next.compute<Json>("cells", {good});
  EXPECT_EQ(next.facts().at("cells"), (Json{{"computed", 0}, {"kept", 1}}));
}

TEST(ExperimentContext, ADatasetThatIsNotThereIsANote) {
  const TempFolder folder, empty;
  ::setenv("HOLDFAST_DATA", empty.path().c_str(), 1);
  ExperimentContext context = context_in(folder.path());
  EXPECT_EQ(context.dataset("gtsrb"), nullptr);
  EXPECT_EQ(context.dataset("gtsrb"), nullptr);
  ASSERT_EQ(context.notes().size(), 1U);
  EXPECT_NE(context.notes()[0].find("gtsrb is left out"), std::string::npos);
}

TEST(ExperimentContext, TrainedNetworksAreReadAgainWithTheirResults) {
  const TempFolder folder;
  TrainOptions first{.architecture = "mlp(hidden=4)", .epochs = 2}, second = first, third = first;
  second.seed = 1;
  third.seed = 2;
  ExperimentContext context = context_in(folder.path());
  const auto data = context.dataset("synthetic(samples=60)");
  const std::vector<TrainedModel> trained = context.train(*data, {first, second}, "train");
  ExperimentContext again = context_in(folder.path());
  const std::vector<TrainedModel> read = again.train(*again.dataset("synthetic(samples=60)"), {first, second}, "train");
  EXPECT_EQ(again.facts().at("models"), (Json{{"trained", 0}, {"kept", 2}}));
  EXPECT_EQ(again.facts().at("work"), context.facts().at("work"));
  EXPECT_EQ(again.facts().at("work")[0].at("networks"), 2);
  const at::Tensor inputs = data->data.inputs.slice(0, 0, 5);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].key, trained[i].key);
    EXPECT_TRUE(at::equal(read[i].model->logits(inputs), trained[i].model->logits(inputs)));
    EXPECT_EQ(read[i].history.size(), 2U);
    EXPECT_EQ(read[i].test->auc.mean, trained[i].test->auc.mean);
  }
  EXPECT_FALSE(at::equal(read[0].model->logits(inputs), read[1].model->logits(inputs)));
  // Weights are read when a cell needs them, not before.
  std::filesystem::rename(trained[0].file, trained[0].file + ".elsewhere");
  const std::vector<TrainedModel> bare = again.train(*data, {first, second}, "train");
  EXPECT_EQ(bare[0].test->auc.mean, trained[0].test->auc.mean);
  EXPECT_THROW(bare[0].model->logits(inputs), Error);
  std::filesystem::rename(trained[0].file + ".elsewhere", trained[0].file);
  EXPECT_TRUE(at::equal(bare[0].model->logits(inputs), trained[0].model->logits(inputs)));
  // In another stack the same training is another network, by its rounding: it is not taken for this one.
  const std::vector<TrainedModel> other = again.train(*data, {first, third}, "train");
  EXPECT_NE(other[0].key, trained[0].key);
  EXPECT_TRUE(at::allclose(other[0].model->logits(inputs), trained[0].model->logits(inputs), 1e-3, 1e-4));
}

TEST(ExperimentContext, SnapshotsOfATrainingAreReadAgain) {
  const TempFolder folder;
  TrainOptions first{.architecture = "mlp(hidden=4)", .epochs = 3, .batch_size = 8}, second = first;
  first.snapshots = second.snapshots = {2, 9};
  second.seed = 1;
  for (const std::vector<TrainOptions>& options : {std::vector{first}, std::vector{first, second}}) {  // alone, and as a stack
    ExperimentContext context = context_in(folder.path()), again = context_in(folder.path());
    const auto data = context.dataset("synthetic(samples=60)");
    const std::vector<TrainedModel> trained = context.train(*data, options, "train");
    const std::vector<TrainedModel> read = again.train(*again.dataset("synthetic(samples=60)"), options, "train");
    EXPECT_EQ(again.facts().at("models").at("trained"), 0);
    const at::Tensor inputs = data->data.inputs.slice(0, 0, 5);
    for (std::size_t i = 0; i < options.size(); ++i) {
      ASSERT_EQ(read[i].snapshots.size(), 2U);
      for (std::size_t j = 0; j < 2; ++j) {
        const TrainedModel &one = read[i].snapshots[j], &made = trained[i].snapshots[j];
        EXPECT_EQ(one.step, options[i].snapshots[j]);
        EXPECT_EQ(one.key, fmt::format("{}; after step {}", read[i].key, one.step));
        EXPECT_EQ(one.validation->auc.mean, made.validation->auc.mean);
        EXPECT_TRUE(at::equal(one.model->logits(inputs), made.model->logits(inputs)));
      }
      EXPECT_FALSE(at::equal(read[i].snapshots[0].model->logits(inputs), read[i].snapshots[1].model->logits(inputs)));
    }
  }
}

// Another run trains the first network: this one trains the second, waits, and takes the first as the other left it.
TEST(ExperimentContext, RunsThatShareAModelsFolderTrainANetworkOnce) {
  const TempFolder folder;
  TrainOptions first{.architecture = "mlp(hidden=4)", .epochs = 2}, second{.architecture = "mlp(hidden=5)", .epochs = 2};
  ExperimentContext other = context_in(folder.path());
  const auto data = other.dataset("synthetic(samples=60)");
  const std::string file = other.train(*data, {first}, "train")[0].file,
                    result = file.substr(0, file.rfind('/')) + "/result.json";
  const std::string left = read_text(result);
  std::filesystem::remove(result);  // not finished yet
  std::optional<FolderLock> others(std::in_place, file.substr(0, file.rfind('/')));

  auto here = std::async(std::launch::async, [&] {
    ExperimentContext context = context_in(folder.path());
    return context.train(*data, {first, second}, "train");
  });
  const auto finished = [&] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "models"))
      count += entry.path().filename() == "result.json" ? 1 : 0;
    return count;
  };
  for (int tries = 0; finished() == 0 && tries < 600; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(finished(), 1U);  // the second
  EXPECT_EQ(here.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);

  const Json marked = [&] {
    Json json = Json::parse(left);
    json["kept_epoch"] = 17;
    return json;
  }();
  write_json(result, marked);
  others.reset();
  EXPECT_EQ(here.get()[0].kept_epoch, 17);
}

// Two runs at once, each slow: between them every cell is computed once, and both have all.
TEST(ExperimentContext, RunsThatShareACellsFolderComputeACellOnce) {
  const TempFolder folder;
  std::atomic<int> calls = 0;
  std::vector<Job<Json>> jobs;
  for (int i = 0; i < 8; ++i) {
    jobs.push_back({fmt::format("cell {}", i), [&calls, i] {
                      ++calls;
                      std::this_thread::sleep_for(std::chrono::milliseconds(40));
                      return Json(i);
                    }});
  }
  const auto run = [&] {
    ExperimentContext context = context_in(folder.path());
    return context.compute("cells", jobs);
  };
  auto one = std::async(std::launch::async, run), two = std::async(std::launch::async, run);
  const std::vector<Json> expected{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(one.get(), expected);
  EXPECT_EQ(two.get(), expected);
  EXPECT_EQ(calls, 8);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cells")) EXPECT_EQ(entry.path().extension(), ".json");
}

// Cells that take no time: a run that has just finished one removes its folder while the others reach for it.
TEST(ExperimentContext, RunsThatShareACellsFolderDoNotTripOverFinishedWork) {
  const TempFolder folder;
  std::atomic<int> calls = 0;
  std::vector<Job<Json>> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back({fmt::format("cell {}", i), [&calls, i] { return ++calls, Json(i); }});
  std::vector<std::future<std::vector<Json>>> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(std::async(std::launch::async, [&] { return context_in(folder.path()).compute("cells", jobs); }));
  }
  for (auto& run : runs) EXPECT_EQ(run.get().back(), 299);
  EXPECT_EQ(calls, 300);
}

const char* const kOwnTable = R"toml(
name = "mine/rows"
paper = "r2et"
summary = "P@4 of two methods on data of my own"
methods = ["Vanilla", "SP"]
[[setting]]
like = "table"
name = "Mine"
dataset = "Mine"
data = "synthetic(samples=120)"
k = 4
epochs = 2
steps = 5
samples = 6
members = 2
[[table]]
name = "P@4"
keys = ["dataset: {name}", "method: {method}"]
column = [
  {name = "er", metric = "top_k(k={k})", attack = "er", select = "last"},
  {name = "saliency removed", measure = "comp"},
  {name = "AUC", of = "AUC"},
  {name = "samples", from = "er", what = "defined", kind = "count"},
  {name = "by chance", from = "er", what = "random points"},
  {name = "ties", from = "er", what = "tied"},
]
[[claim]]
id = "mine"
says = "SP is ahead of Vanilla on {datasets}"
what = "P@4 of SP minus Vanilla's"
table = "P@4"
columns = ["er"]
rows = ["method=SP"]
minus = ["method=Vanilla"]
case = "{name}, {metric}"
)toml";

TEST(OwnExperiment, IsOneTomlFile) {
  const TempFolder folder;
  write_atomic(folder / "rows.toml", std::string_view(kOwnTable));
  const Json results = run_experiment({.experiment = folder / "rows.toml", .threads = 1, .folder = folder / "run"});
  EXPECT_EQ(results.at("experiment"), "mine/rows");
  const Json& table = results.at("tables")[0];
  ASSERT_EQ(table.at("rows").size(), 2U);
  EXPECT_EQ(table.at("rows")[1].at("keys"), (Json{"Mine", "SP"}));
  EXPECT_EQ(table.at("kinds"), (Json{"share", "share", "share", "count", "share", "share"}));
  const std::string notes = results.at("notes").dump();
  for (const Json& row : table.at("rows")) {
    const Json& er = row.at("values")[0];
    EXPECT_TRUE(er.at("value") >= 0 && er.at("value") <= 1 && er.at("low") <= er.at("high"));
    EXPECT_TRUE(er.contains("chance") && er.contains("between") && er.contains("specific"));
    EXPECT_EQ(row.at("values")[3].at("value"), 12);  // two networks of six samples
    const double by_chance = row.at("values")[4].at("value");
    EXPECT_TRUE(by_chance >= 0 && by_chance < 1) << "300 points of a ball of radius 1 change something";
    const std::string note = fmt::format("Mine, {}, er: random points find more", row.at("keys")[1].get<std::string>());
    EXPECT_EQ(notes.find(note) != std::string::npos, by_chance < er.at("value")) << notes;
    EXPECT_EQ(row.at("values")[5].at("value"), 0) << "no two features count the same";
  }
  const Json& verdict = results.at("verdicts")[0];
  EXPECT_EQ(verdict.at("says"), "SP is ahead of Vanilla on Mine");
  EXPECT_NEAR(verdict.at("number").get<double>(),
              table.at("rows")[1].at("values")[0].at("value").get<double>() -
                  table.at("rows")[0].at("values")[0].at("value").get<double>(),
              1e-12);
  keep_results(folder / "run", folder / "results");
  EXPECT_TRUE(file_exists(folder / "results/mine/rows.json"));
}

// The own table with some text changed.
std::string changed_table(const TempFolder& folder, const std::string& from, const std::string& to) {
  std::string text = kOwnTable;
  text.replace(text.find(from), from.size(), to);
  write_atomic(folder / "rows.toml", std::string_view(text));
  return folder / "rows.toml";
}

TEST(PlanExperiments, CountsWhatTheRunDoes) {
  const std::string methods = R"(methods = ["Vanilla", "SP"])";
  for (const std::string& choice : {methods, std::string(R"(methods = ["Vanilla", "SP", 'R2ET\H'])") + "\nchoice = \"er\""}) {
    const TempFolder folder;
    const std::string file = changed_table(folder, methods, choice);
    const ReproduceOptions options{.experiment = file, .threads = 1, .folder = folder / "run"};
    const Json plan = plan_experiments({options});
    EXPECT_FALSE(folder_exists(options.folder)) << "a plan writes nothing";
    EXPECT_EQ(plan.at("experiments")[0].at("experiment"), "mine/rows");
    const Json& total = plan.at("total");
    // Two of each method; where weights are chosen, Vanilla and two weights are tried with one seed.
    EXPECT_EQ(total.at("networks").at("train"), choice == methods ? 4 : 6 + 3);
    EXPECT_EQ(total.at("networks").at("kept"), 0);
    EXPECT_EQ(total.at("cells").at("kept"), 0);
    EXPECT_GT(total.at("steps"), 0);
    EXPECT_GT(total.at("evaluations"), 0);
    const Json& seconds = total.at("seconds");
    EXPECT_GT(seconds.at("1"), 0);
    EXPECT_LT(seconds.at("8"), seconds.at("1")) << "there is more than one piece of work";

    run_experiment(options);
    const Json manifest = read_json(options.folder + "/manifest.json");
    EXPECT_EQ(total.at("networks").at("train"), manifest.at("models").at("trained"));
    EXPECT_EQ(total.at("cells").at("compute"), manifest.at("cells").at("computed"));

    const Json again = plan_experiments({options}).at("total");
    EXPECT_EQ(again.at("networks"), (Json{{"train", 0}, {"kept", total.at("networks").at("train")}}));
    EXPECT_EQ(again.at("cells"), (Json{{"compute", 0}, {"kept", total.at("cells").at("compute")}}));
    EXPECT_EQ(again.at("seconds").at("1"), 0);
  }
}

TEST(PlanExperiments, CountsSharedWorkOnce) {
  const TempFolder folder;
  ReproduceOptions options{.experiment = changed_table(folder, "paper = ", "paper = "), .threads = 1, .folder = folder / "run"};
  const Json one = plan_experiments({options}).at("total"), two = plan_experiments({options, options});
  EXPECT_EQ(two.at("total").at("networks"), one.at("networks"));
  EXPECT_EQ(two.at("total").at("cells"), one.at("cells"));
  EXPECT_EQ(two.at("experiments")[1].at("cells").at("compute"), 0);
}

TEST(PlanExperiments, RefusesWhatARunRefuses) {
  const TempFolder folder;
  EXPECT_ERROR(plan_experiments({{.experiment = "r2et/bounds", .folder = folder / "run", .only = {"nonsense"}}}), kUsage,
               "begins so");
  EXPECT_ERROR(plan_experiments({{.experiment = "r2et/bounds", .folder = folder / "run", .looks = {1}}}), kUsage, "no interval");
}

std::size_t networks_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(Looks, GoOnUntilTheClaimIsDecided) {
  const TempFolder folder;
  // No difference of shares is below -2, so two seeds decide it.
  const std::string file = changed_table(folder, "case = ", "limit = -2\ncase = ");
  const ReproduceOptions sure{.experiment = file, .threads = 1, .folder = folder / "sure", .looks = {2, 4}};
  const Json decided = run_experiment(sure);
  EXPECT_EQ(decided.at("settings").at("seeds"), (Json{{"looks", {2, 4}}, {"reached", 2}, {"level", 0.975}}));
  EXPECT_EQ(decided.at("verdicts")[0].at("verdict"), "holds");
  const std::string why = decided.at("verdicts")[0].at("why");
  EXPECT_NE(why.find("Decided at 2 seeds (looks: 2, 4; intervals of 97.5 %)."), std::string::npos) << why;
  EXPECT_EQ(networks_in(sure.folder + "/models"), 4U);
}

TEST(Looks, AddToTheNetworksOfTheLookBefore) {
  const TempFolder folder;
  const std::string file = changed_table(folder, "case = ", "case = ");
  const ReproduceOptions options{
      .experiment = file, .threads = 1, .folder = folder / "run", .models = folder / "models", .cells = folder / "cells"};
  run_experiment(options);
  EXPECT_EQ(networks_in(options.models), 4U);
  ReproduceOptions more = options;
  more.folder = folder / "more";
  more.looks = {2, 5};
  const Json results = run_experiment(more);
  const Json verdict = results.at("verdicts")[0], manifest = read_json(more.folder + "/manifest.json");
  ASSERT_EQ(results.at("settings").at("seeds").at("reached"), 5) << "two seeds decide nothing here";
  EXPECT_EQ(verdict.at("seeds"), 5);
  EXPECT_EQ(manifest.at("models").at("trained"), 6) << "seeds 2, 3 and 4 of both methods";
  EXPECT_EQ(networks_in(options.models), 10U);
  EXPECT_EQ(results.at("tables")[0].at("rows")[0].at("values")[2].at("n"), 5);
  // Seeds that were asked for in other looks are the same networks.
  ReproduceOptions other = options;
  other.folder = folder / "other";
  other.looks = {4};
  run_experiment(other);
  EXPECT_EQ(read_json(other.folder + "/manifest.json").at("models").at("trained"), 0)
      << "four seeds: two and two, and five: two, two and one";
}

TEST(Looks, MustBeAscendingNumbersOfSeeds) {
  const TempFolder folder;
  ReproduceOptions options{.experiment = "r2et/bounds", .folder = folder / "run", .looks = {5, 5}};
  EXPECT_ERROR(run_experiment(options), kUsage, "--seeds 5,5: 5 comes after 5");
}

TEST(OwnExperiment, SaysWhatItDoesNotKnow) {
  const TempFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& saying) {
    std::string text = kOwnTable;
    text.replace(text.find(from), from.size(), to);
    write_atomic(folder / "rows.toml", std::string_view(text));
    EXPECT_ERROR(run_experiment({.experiment = folder / "rows.toml", .threads = 1, .folder = folder / "run"}), kUsage, saying);
    EXPECT_FALSE(folder_exists(folder / "run")) << "mistakes are found before any work";
  };
  refused("members = 2", "membres = 2", "membres");
  for (const char* name : {"../rows", "/rows", "mine/a/rows", "mine/", "mine/verdicts"})
    refused("mine/rows", name, "cannot name a file; write NAME or GROUP/NAME");
  refused("top_k(k={k})", "top_k(k={kk})", "{kk} is not known here");
  refused("\"SP\"]", "\"SPP\"]", "there is no method 'SPP' (did you mean 'SP'?)");
  refused("paper = \"r2et\"", "paper = \"r2e\"", "carries no file configs/r2e/paper.toml (did you mean 'r2et/paper.toml'?)");
  refused("like = \"table\"", "like = \"tabel\"", "there is no base or setting 'tabel'");
  refused("[[setting]]", "[[note]]\ntext = \"none\"\n[[method]]", "it has no settings; name some of the paper's");
  refused("of = \"AUC\"", "of = \"AUCC\"", "'AUCC' is not known");
  refused("columns = [\"er\"]", "columns = [\"mse\"]", "table 'P@4': column 'mse' is not known");
  refused("method: {method}", "method: {methd}", "{methd} is not known here (did you mean 'method'?");
  refused("case = \"{name}", "case = \"{nam}", "claim 'mine': ");
  refused("on {datasets}", "on {dataset}", "{dataset} is not known here");
  refused("method=SP\"", "methd=SP\"", "'methd=SP': word 'methd' is not known");
  refused("method=Vanilla\"", "method=Vanila\"", "did you mean 'Vanilla'?");
  refused("method=Vanilla\"", "Vanilla\"", "'Vanilla' must be word=value");
  refused("select = \"last\"", "select = \"lst\"", "column 'er': select 'lst' is not known");
  refused("select = \"last\"", "samples = \"ten\"", "samples = \"ten\" is not a number of samples");
  refused("select = \"last\"", "what = \"adjustd\"", "must be \"adjusted\" or \"below NUMBER\"");
  refused("select = \"last\"", "what = \"below x\"", "must be \"adjusted\" or \"below NUMBER\"");
  refused("select = \"last\"", "choice = \"err\"", "choice 'err' is not known");
  refused("attack = \"er\"", "attack = \"err\"", "unknown attack 'err'");
  refused("measure = \"comp\"", "measure = \"conp\"", "unknown measure 'conp'");
  refused("name = \"AUC\"", "name = \"er\"", "there are two columns 'er'");
  refused("samples = 6", "samples = -10", "samples = -10 must be at least 1");
  refused("members = 2", "kind = \"tabel\"", "kind 'tabel' is not known");
  refused("members = 2", "norm = \"l3\"", "l3");
  refused("[[table]]", "[[radius]]\nname = \"one\"\ncall = \"abc\"\n[[table]]",
          "radius 'one': call = \"abc\" is not a number above 0");
  refused("paper = \"r2et\"", "paper = \"r2et\"\nanalysis = \"tabel4\"", "did you mean 'table4'?");
  refused("paper = \"r2et\"", "paper = \"r2et\"\nsettings = [\"Adlut\"]",
          "'Adlut' is no setting, dataset, encoding, kind or tag");
  refused("metric = \"top_k(k={k})\"", "metric = \"spearman\"",
          "random points are judged by what the attack lowers, top_k(k={k})");
  refused("kind = \"count\"", "kind = \"number\"", "unknown kind of column 'number'");
}

TEST(Papers, AllFilesAreReadAtEveryScale) {
  for (const char* name : {"r2et", "lens"}) {
    for (const Scale scale : {Scale::kQuick, Scale::kCpu, Scale::kFull}) {
      for (const std::string& experiment : paper::paper_named(name, scale).experiments) {
        const std::string file = fmt::format("{}/{}.toml", name, experiment);
        const paper::Plan plan = paper::read_plan(paper::carried_file(file), file, scale);
        EXPECT_EQ(plan.info.name, fmt::format("{}/{}", experiment == "certified" ? "beyond" : name, experiment));
        EXPECT_FALSE(plan.tables.empty()) << file;
        paper::Words options;
        for (const OptionSpec& option : plan.info.options) options[option.name] = holdfast::to_string(option.value);
        EXPECT_NO_THROW(check_plan(plan, paper::paper_named(name, scale), options)) << file;
        for (const paper::FigurePlan& figure : plan.figures) {
          const std::string spec = figure.spec.empty() ? "{}" : paper::carried_file(fmt::format("{}/{}", name, figure.spec));
          EXPECT_NO_THROW(parse_json(spec, file)) << figure.spec;
        }
        for (const paper::Claim& claim : plan.claims) EXPECT_FALSE(claim.says.empty()) << file << claim.id;
      }
    }
  }
}

TEST(Experiments, AGroupThatIsNotKnownIsRefused) {
  EXPECT_ERROR(experiments_of("r3et"), kUsage, "unknown experiment 'r3et'");
}

TEST(OverSeeds, IsStudentsInterval) {
  // Mean 3, deviation sqrt(2.5), t(4) = 2.776: half width 2.776 * sqrt(2.5 / 5) = 1.963.
  const Value value = over_seeds(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(value.value, 3);
  EXPECT_NEAR(*value.high - 3, 2.776 * std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(3 - *value.low, 2.776 * std::sqrt(0.5), 1e-12);
  EXPECT_EQ(value.count, 5);
  EXPECT_FALSE(over_seeds(std::vector<double>{1, std::nan("")}).low);
}

TEST(OverSeeds, IsWiderWhereDataIsLookedAtSeveralTimes) {
  const std::vector<double> five{1, 2, 3, 4, 5};
  {
    const IntervalLevel four_looks(1 - 0.05 / 4);
    EXPECT_NEAR(*over_seeds(five).high - 3, 4.314656048886743 * std::sqrt(0.5), 1e-9);  // t(4) at 99.375 %, by SciPy
    EXPECT_NEAR(*over_seeds(std::vector<double>{2, 4}).high - 3, 50.92303663648572, 1e-7);
  }
  EXPECT_NEAR(*over_seeds(five).high - 3, 2.776 * std::sqrt(0.5), 1e-12);
  std::vector<double> forty;
  for (int i = 0; i < 40; ++i) forty.push_back(i % 2);
  EXPECT_NEAR(*over_seeds(forty).high - 0.5, 2.022690920036761 * 0.5 / std::sqrt(39), 1e-9) << "not the normal's 1.960";
}

TEST(OverSeeds, TakesMeansOfSamplesFirst) {
  const Value value = over_seeds({{0, 1}, {1, 1, 1, std::nan("")}}, 0);
  EXPECT_DOUBLE_EQ(value.value, 0.75);
  EXPECT_EQ(value.count, 2);
  const Value one = over_seeds({{0, 1, 0, 1}}, 0);
  EXPECT_EQ(one.count, 4);
  EXPECT_TRUE(one.low && *one.low < 0.5);
}

TEST(OverSeeds, OfSharesStayBetweenZeroAndOne) {
  const Value wide = over_seeds(std::vector<double>{0.1, 0.9, 0.95});
  ASSERT_LT(*wide.low, 0);
  ASSERT_GT(*wide.high, 1);
  EXPECT_EQ(*share(wide).low, 0);
  EXPECT_EQ(*share(wide).high, 1);
  EXPECT_EQ(share(wide).value, wide.value);
  EXPECT_FALSE(share(Value{.value = 0.5}).low);
}

TEST(OverSeeds, PairsNumbersBySeed) {
  const Value found = difference_over_seeds(std::vector<double>{3, 4, 6}, std::vector<double>{1, 2, 3}),
              expected = over_seeds(std::vector<double>{2, 2, 3});
  EXPECT_EQ(found.value, expected.value);
  EXPECT_EQ(found.low, expected.low);
}

TEST(OverSeeds, PairsDifferencesBySeed) {
  const Value value = difference_over_seeds({{2, 2}, {5, 5}, {9, 9}}, {{1, 1}, {4, 4}, {8, 8}}, 0);
  EXPECT_DOUBLE_EQ(value.value, 1);
  EXPECT_DOUBLE_EQ(*value.low, 1);  // every seed has the same difference although the seeds differ
}

}  // namespace
}  // namespace holdfast::experiment
