// Experiments: tables and figures of papers as commands (`holdfast reproduce r2et/table1`), and what they leave behind.
//
// An experiment is a TOML file (configs/r2et/table1.toml; docs/reproduce.md), with a C++ function beside it where a table cannot
// say it. Everything that takes time goes through the context, which keeps it: a trained network in the models folder, any other
// finished piece of work (an attacked or measured cell) in the cells folder, each by a key that says all it depends on. So an
// interrupted run goes on where it stopped, experiments of a group share what they have in common, and results.json ends with the
// same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/communicator.h"
#include "holdfast/core/json.h"
#include "holdfast/core/judgement.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/dataset.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/experiment/late_model.h"
#include "holdfast/model/model.h"
#include "holdfast/train/trainer.h"

namespace holdfast::experiment {

enum class Scale {
  kQuick,  // shows that all of it works: under 3 minutes on 2 cores
  kCpu,    // what a CPU can do in hours; what is reduced is said in the result
  kFull,   // the paper's setting, for a GPU
};
Scale parse_scale(const std::string& text);  // "quick", "cpu", "full"; throws kUsage
std::string to_string(Scale scale);

// One number of a table, with what a reader needs to judge it.
struct Value {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: not measured, or undefined
  std::optional<double> low = {}, high = {};                // 95 %
  std::int64_t count = 0;                // what the interval is over: seeds, or samples where there is one seed
  std::optional<double> published = {};  // the paper's number
  std::optional<double> chance = {}, between = {}, specific = {}, lift = {}, effective_sets = {}, own_advantage = {};  // levels.h
};
Json to_json(const Value& value);

// What a column of numbers holds, which decides how it is written.
enum class ColumnKind {
  kCount,  // whole numbers without an interval
  kShare,  // numbers in [0, 1]
  kValue,  // any number
};
std::string to_string(ColumnKind kind);                 // "count", "share", "value"
ColumnKind parse_column_kind(const std::string& text);  // throws kUsage

struct ResultColumn {
  std::string name;  // "P@8, er"
  ColumnKind kind = ColumnKind::kValue;
};

struct ResultTable {
  struct Row {
    std::vector<std::string> keys;  // one for each of `keys`
    std::vector<Value> values;      // one for each of `columns`
  };
  std::string name, caption;
  std::vector<std::string> keys;      // columns of words: "dataset", "method"
  std::vector<ResultColumn> columns;  // columns of numbers
  std::vector<Row> rows = {};

  void add(std::vector<std::string> keys, std::vector<Value> values);  // checks the counts
};

// Samples before and after an attack, drawn by the report from arrays in the run folder (context.panel writes them).
struct Panel {
  std::string title;
  std::string arrays;  // folder below the run's
};

struct Figure {
  std::string name, caption;
  Json spec = {};  // a Vega-Lite specification with its data inside; null: none
  std::vector<Panel> panels = {};
};

// One of the things that a claim says together with others.
struct ClaimPart {
  std::string name;  // "tables, ReLU"
  Judgement judgement = Judgement::kNotDecided;
  std::string needs = {};            // what would decide it, where it is open
  std::optional<double> times = {};  // that: so many times as many seeds
};

struct Verdict {
  std::string claim;  // "R2"
  std::string says;   // the claim in words
  Judgement judgement = Judgement::kNotDecided;
  std::string why;                                         // what the number is, and what stands against the claim
  std::optional<double> number = {}, low = {}, high = {};  // what decides it, with its 95 % interval
  std::int64_t seeds = 0;                                  // trained networks behind each number; 0: none were trained
  std::vector<ClaimPart> parts = {};                       // of a claim that says several things; empty: it says one
  std::string plain = {};            // the claim and what became of it, in one sentence for who has not read the paper
  std::optional<double> times = {};  // where it is open: so many times as many seeds would decide it, if all stays as it is
};

struct ExperimentResult {
  std::string title, paper;
  Json settings = Json::object();  // resolved: datasets, networks, epochs, weights that were chosen
  std::vector<ResultTable> tables = {};
  std::vector<Figure> figures = {};
  std::vector<Verdict> verdicts = {};
};

// A dataset as it was asked for.
struct ExperimentData {
  Dataset data;
  std::string key;  // call, seed of the split, fold, content
  std::uint64_t seed = 0;
  std::int64_t fold = 0;
};

struct TrainedModel {
  std::string key;   // of the dataset and of all that decides the weights
  std::string file;  // of the weights
  LateModel model;   // where all of its cells are kept, its weights are not needed
  std::uint64_t seed = 0;
  std::int64_t kept_epoch = 0;
  std::vector<EpochRecord> history = {};
  std::optional<PredictionQuality> validation = {}, test = {};
  std::string structure = {};                // architecture and activation: what its passes cost
  bool is_planned = false;                   // stands in for a network that is not trained yet (ExperimentContext::plans)
  std::int64_t step = 0;                     // of a snapshot: optimiser steps before it; 0: the training's own result
  std::vector<TrainedModel> snapshots = {};  // networks of the same training, one for each of the options' snapshots
};

// How a plan finds out what a job costs, and goes on without its result.
template <class Result>
struct JobTrial {
  std::int64_t units = 1;                              // samples of the job
  double evaluations = 0;                              // gradients of the model in all; 0: not counted
  std::function<Result(std::int64_t)> few = {};        // the job on its first so many units; none: the job is tried as it is
  std::function<Result(const Result&)> stand_in = {};  // of the shape of the job's result, from what a trial gave; none: that
};

// A piece of work with a small result, which to_json and from_json write to a file and read again. `compute` is called on one
// thread with intra-operator parallelism 1 and must be safe beside others; `key` says all that the result depends on.
template <class Result>
struct Job {
  std::string key;
  std::function<Result()> compute;
  WorkPiece work = {};  // for progress
  JobTrial<Result> trial = {};
};

// The samples of a figure's panel; maps in the layout's shape.
struct PanelSamples {
  at::Tensor inputs, perturbed, original_maps, perturbed_maps;         // [B, sample...]
  std::vector<std::int64_t> ids, labels, predictions;                  // [B]; labels may be empty
  std::vector<double> values;                                          // [B], of the metric
  std::vector<std::vector<std::int64_t>> top_original, top_perturbed;  // [B]: positions in a folded map that are marked
};

class WorkPlan;  // src/experiment/work_plan.h

class ExperimentContext {
 public:
  struct Folders {
    std::string run, models, cells;
  };
  // Networks and cells are shared with `ranks`, where there are any. With a `plan` no network is trained, no cell computed and
  // nothing written: what is missing is added to the plan, and stand-ins take its place.
  ExperimentContext(Scale scale, std::uint64_t seed, int threads, at::Device device, Folders folders,
                    std::vector<std::string> only = {}, Communicator* ranks = nullptr, WorkPlan* plan = nullptr);

  const Scale scale;
  const std::uint64_t seed;
  const int threads;  // at least 1
  const at::Device device;
  const std::vector<std::string> only;  // beginnings of the datasets' names in tables that are wanted; none: all

  // Numbers of seeds, ascending, at which claims are judged until they are decided; none: once, with the seeds of the settings.
  std::vector<std::int64_t> looks = {};
  // Forgets notes and panels of an earlier look; notes about data stay.
  void begin_look();

  bool wants(const std::string& name) const;  // capitals, '-', '_' and blanks do not count
  bool quick() const { return scale == Scale::kQuick; }
  bool plans() const { return plan_ != nullptr; }
  // `quick`, `cpu` or `full`, by the scale.
  template <class T>
  T by_scale(T quick, T cpu, T full) const {
    return scale == Scale::kQuick ? quick : scale == Scale::kCpu ? cpu : full;
  }

  // Null, and a note in the result, where the dataset's files are not there. Loaded once.
  std::shared_ptr<const ExperimentData> dataset(const std::string& call, std::uint64_t split_seed = 0, std::int64_t fold = 0);

  // Trains what is not in the models folder yet, side by side and in stacks where that is faster (reproduce_train.cpp); in the
  // order of `options`, whose folder, device, threads and progress are set here. The models are on the context's device.
  // Trainings with different numbers in `stacks` are not stacked: one number for each of `options`, or none.
  std::vector<TrainedModel> train(const ExperimentData& data, std::vector<TrainOptions> options, const std::string& label,
                                  const std::vector<std::size_t>& stacks = {});

  // The jobs' results in their order: those kept from before, the others computed side by side. Numbers are as read back from the
  // file.
  template <class Result>
  std::vector<Result> compute(const std::string& label, const std::vector<Job<Result>>& jobs) {
    std::vector<Job<Json>> kept;
    for (const Job<Result>& job : jobs) {
      kept.push_back({job.key, [&job] { return Json(job.compute()); }, job.work, {job.trial.units, job.trial.evaluations}});
      if (job.trial.few) kept.back().trial.few = [&job](std::int64_t units) { return Json(job.trial.few(units)); };
      if (job.trial.stand_in)
        kept.back().trial.stand_in = [&job](const Json& tried) { return Json(job.trial.stand_in(tried.get<Result>())); };
    }
    std::vector<Result> results;
    for (const Json& json : compute_kept(label, kept)) results.push_back(json.get<Result>());
    return results;
  }

  // Writes arrays for the report to draw; a plan draws nothing.
  Panel panel(const std::string& title, const Schema& schema, const PanelSamples& samples);

  // What a reader of the result must know; the same note once.
  void note(const std::string& text);
  const std::vector<std::string>& notes() const { return notes_; }
  // The datasets that were asked for and whose files are not there, as `data fetch` calls them.
  const std::vector<std::string>& missing_datasets() const { return missing_; }
  // For the manifest: datasets used; networks trained and kept from before, cells computed and kept; and, whenever and wherever
  // they were made, the work behind them:
  // "work": [{"on": "AMD EPYC, torch 2.13.0, cpu", "commits": ["1a2b3c4d5e6f"], "networks", "cells", "seconds"}].
  Json facts() const;

 private:
  std::vector<Json> compute_kept(const std::string& label, const std::vector<Job<Json>>& jobs);
  // Groups of positions in `options` that are trained together.
  void train_missing(const Dataset& dataset, const std::vector<TrainOptions>& options,
                     const std::vector<std::vector<std::size_t>>& groups, const std::string& label);

  void data_note(const std::string& text);

  // Whether this rank may do a piece of work: each is given to one rank; without other ranks always.
  bool takes(const std::string& piece);

  // The network that a plan puts in the place of a training's.
  TrainedModel planned_network(const TrainedModel& known, const TrainOptions& options, const Layout& layout) const;

  Folders folders_;
  Communicator* ranks_;
  WorkPlan* plan_;
  std::mutex taken_mutex_;
  std::set<std::string> taken_;  // pieces that this rank was given
  std::vector<std::pair<std::string, std::shared_ptr<const ExperimentData>>> datasets_;
  std::vector<std::string> missing_;
  std::vector<std::string> notes_;
  std::set<std::string> data_notes_;  // of them
  std::int64_t trained_ = 0, models_kept_ = 0, computed_ = 0, cells_kept_ = 0;
  std::int64_t panels_ = 0;

  struct Work {
    std::set<std::string> networks, cells;  // their files
    std::set<std::string> commits;          // of the programs that made them
    double seconds = 0;                     // of one thread
  };
  Work& work_of(const Json& made);    // what a kept network or cell says of its making
  std::map<std::string, Work> work_;  // by machine
};

class Experiment {
 public:
  explicit Experiment(std::string name) : name_(std::move(name)) {}
  virtual ~Experiment() = default;
  virtual ExperimentResult run(ExperimentContext& context) const = 0;
  const std::string& name() const { return name_; }  // canonical call

 private:
  std::string name_;
};

const Registry<Experiment>& experiments();

// The experiment of a call, or of a TOML file.
std::unique_ptr<Experiment> make_experiment(const std::string& text);

// Names of the experiments that `text` asks for: itself, or all of a group ("r2et"). Throws kUsage when there is none.
std::vector<std::string> experiments_of(const std::string& text);

struct ReproduceOptions {
  std::string experiment;  // call, or the path of a TOML file
  Scale scale = Scale::kQuick;
  std::uint64_t seed = 0;
  int threads = 0;  // 0: one for each core
  at::Device device = at::kCPU;
  std::string folder;         // run folder, claimed here
  std::string models, cells;  // empty: below the run folder
  std::vector<std::string> only = {};
  std::vector<std::int64_t> looks = {};  // numbers of seeds to judge at until all claims are decided; none: those of the settings
  bool restart = false;                  // a run of other settings or data that lies in the folder is replaced
  bool may_be_empty = false;      // an experiment without any of the datasets in `only` gives null and no folder, not an error
  Communicator* ranks = nullptr;  // others that run the same experiment
};
// Runs one experiment and writes results.json and manifest.json; a complete run is read instead. Ranks other than 0 train
// networks and compute cells, and get null. Returns results.json:
//     {"kind": "experiment", "experiment", "scale", "seed", "title", "paper", "settings",
//      "tables": [{"name", "caption", "keys", "columns", "kinds", "rows": [{"keys": [...], "values": [{"value", "low", "high",
//                  "n", "published"?, "chance"?, "between"?, "specific"?, "lift"?, "effective_sets"?, "own_advantage"?}]}]}],
//      "figures": [{"name", "caption", "spec"?, "panels": [{"title", "arrays"}]}],
//      "verdicts": [{"claim", "says", "verdict", "number", "low", "high", "seeds", "experiment", "scale", "why",
//                    "plain"?, "times"?, "parts"?: [{"name", "verdict", "needs"?, "times"?}]}], "notes"}
Json run_experiment(const ReproduceOptions& options);

// What runs of these experiments would do, one after the other, and what it would cost: everything is checked, and every kind of
// work is tried on a few samples. Trains no network, computes no cell and writes nothing.
//     {"kind": "plan", "scale", "seed", "device", "threads", "experiments": [{"experiment", "networks": {"train", "kept"},
//      "steps", "cells": {"compute", "kept"}, "evaluations", "seconds": {"1", "2", "4", "8"}}],
//      "total": the same without a name, "memory", "notes"}
// Networks and cells that several of them need count once: with the first. `seconds` by the number of machines like this one;
// `memory` in bytes.
Json plan_experiments(const std::vector<ReproduceOptions>& runs);

// Copies a complete run's small files: FOLDER/<paper>/<experiment>.json and .manifest.json, and makes
// FOLDER/<paper>/verdicts.json again from all results that lie there.
void keep_results(const std::string& run, const std::string& folder);

// What became of kept results whose rows of one dataset were made again.
struct KeptCheck {
  struct Difference {
    std::string where;  // "tables: COMPAS, one-hot, SP, : AUC"
    double kept, again, allowed;
  };
  std::string experiment, dataset;
  bool same_machine = false;          // torch, instruction set and device are those of the kept results
  std::int64_t numbers = 0;           // that were compared
  std::vector<Difference> differing;  // by more than allowed
  std::vector<std::string> missing;   // kept rows that the new run does not have: other weights were chosen, for example
  bool agrees() const { return differing.empty() && missing.empty(); }
};

// Runs one dataset of the kept results at `path` (with or without .json) again, at their scale and seed, and compares every
// number of its rows. The dataset is the one in options.only, or one drawn by `draw`. Numbers may differ by 1e-6 where torch,
// instruction set and device are the same; elsewhere by the width of the kept interval, and by .05 at least. Throws kInput where
// the kept results were made by another protocol.
KeptCheck check_kept(const std::string& path, ReproduceOptions options, std::uint64_t draw);

}  // namespace holdfast::experiment
