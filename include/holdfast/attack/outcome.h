// What an attack did to one sample: the record that result.json, samples.csv, the tile store and Python's columns are made of.
// A new field is a member here and a line in for_each_field; what fills it is the second file.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::metric {
class Metric;
}

namespace holdfast::attack {

struct SampleOutcome {
  std::int64_t target = 0;            // the class that is explained
  std::int64_t prediction = 0;        // at the clean input
  std::int64_t prediction_after = 0;  // ... and at the returned one
  double confidence = 0;              // probability of the target at the clean input
  double confidence_after = 0;        // ... and at the returned one
  double norm = 0;                    // size of the perturbation, in the threat's norm
  double value = 0;                   // the metric at the returned input
  std::int64_t first_swap = -1;       // iteration at which a feature first left the top k, -1: never (or no top k)
  std::int64_t label_flips = 0;       // iterates met whose predicted class had changed
  std::int64_t evaluations = 0;  // gradient evaluations: an explanation costs explainer.evaluations(), its pullback twice that
  std::int64_t iteration = 0;    // at which the returned input was found; 0: the clean input, or the task's start
  std::int64_t projections = 0;  // steps that left ball or box and were brought back
  std::int64_t non_finite = 0;   // iterates whose map or gradient was not finite, at a kink of the model
  std::int64_t followed = 0;     // steps along a gradient
  std::int64_t no_gradient = 0;  // steps that found none: it was zero or not finite, and the walker stayed where it was
  double clean_margin = 0;       // logit of the predicted class above the runner-up, at the clean input
  double margin = 0;             // ... and at the returned one
  std::string component = {};    // the part of an ensemble that found the returned input; empty: none, or no ensemble
  // How far an ensemble's value still moved in the last fifth of the sample's work; 0 at the floor, NaN where the value is
  // undefined, and for other attacks.
  double late_gain = std::numeric_limits<double>::quiet_NaN();
  // How far the one of an ensemble's two independent restarts that found less stayed behind the value; 0 where nothing is left to
  // find, NaN where the value is undefined, and for other attacks.
  double restart_gap = std::numeric_limits<double>::quiet_NaN();
  // What no allowed point can be below, proven; and the parts of the ball that were looked at for it. `exact` and `gauntlet`.
  double proven = std::numeric_limits<double>::quiet_NaN();
  std::int64_t nodes = 0;
  // The metric of the best (kWorst) or current (kLast) point after each iteration, and the evaluations used by then.
  std::vector<double> trace = {};
  std::vector<std::int64_t> trace_evaluations = {};
};

// Calls visit(name, member pointer) for every field, in the order of the record.
template <class Visit>
void for_each_field(const Visit& visit) {
  visit("target", &SampleOutcome::target);
  visit("prediction", &SampleOutcome::prediction);
  visit("prediction_after", &SampleOutcome::prediction_after);
  visit("confidence", &SampleOutcome::confidence);
  visit("confidence_after", &SampleOutcome::confidence_after);
  visit("norm", &SampleOutcome::norm);
  visit("value", &SampleOutcome::value);
  visit("first_swap", &SampleOutcome::first_swap);
  visit("label_flips", &SampleOutcome::label_flips);
  visit("evaluations", &SampleOutcome::evaluations);
  visit("iteration", &SampleOutcome::iteration);
  visit("projections", &SampleOutcome::projections);
  visit("non_finite", &SampleOutcome::non_finite);
  visit("followed", &SampleOutcome::followed);
  visit("no_gradient", &SampleOutcome::no_gradient);
  visit("clean_margin", &SampleOutcome::clean_margin);
  visit("margin", &SampleOutcome::margin);
  visit("component", &SampleOutcome::component);
  visit("late_gain", &SampleOutcome::late_gain);
  visit("restart_gap", &SampleOutcome::restart_gap);
  visit("proven", &SampleOutcome::proven);
  visit("nodes", &SampleOutcome::nodes);
  visit("trace", &SampleOutcome::trace);
  visit("trace_evaluations", &SampleOutcome::trace_evaluations);
}

// Whether restarts that are so far apart agree: within .005 of the metric's range, or of the value where that is endless.
bool restarts_agree(double gap, const Metric& metric, double value);

// For readers: numbers that are undefined or infinite, a swap that never came and a component that is not named are null.
// Without `trace` the two traces are left out.
Json to_json(const SampleOutcome& outcome, bool trace);

// For the tile store, which gives back the very same record: numbers that are not finite are the words nan, inf and -inf.
Json to_exact_json(const SampleOutcome& outcome);
SampleOutcome outcome_from_json(const Json& json);

// For tables: the fields that are one number or word, and their texts; what is undefined is empty.
std::vector<std::string> outcome_columns();
std::vector<std::string> outcome_texts(const SampleOutcome& outcome);

}  // namespace holdfast::attack
