// What a run would do, without doing it: the networks and cells that an experiment asks its context for (reproduce.h), and what a
// short trial of each kind of work says about their cost.
//
// The experiment's own code runs, so that nothing is counted by other rules. A network that is missing is replaced by a fresh
// one, a cell by made-up numbers; what they lead to, a choice of weights for example, is one of those that the run may come to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "holdfast/experiment/reproduce.h"

namespace holdfast::experiment {

class WorkPlan {
 public:
  explicit WorkPlan(at::Device device) : on_processor_(device.is_cpu()) {}

  // Pieces that are added from now on are done side by side; those of phases one after the other.
  void begin_phase() { phases_.emplace_back(); }

  // Networks by their folders, cells by their files. Those that were added are there for whoever asks next.
  void keep_network(const std::string& folder) { kept_networks_.insert(folder); }
  void keep_cell(const std::string& path) { kept_cells_.insert(path); }
  bool has_network(const std::string& folder) const { return networks_.contains(folder); }
  bool has_cell(const std::string& path) const { return cells_.contains(path); }
  // Trainings that are made together, by one thread.
  void add_trainings(const Dataset& dataset, const std::vector<TrainOptions>& together);
  void add_cell(const std::string& path, const Job<Json>& job);
  // In the place of a result; of jobs that were added.
  Json stand_in(const Job<Json>& job) const;

  // All that was added since the last call, and the cost.
  struct Part {
    std::int64_t networks = 0, networks_kept = 0, cells = 0, cells_kept = 0;
    double steps = 0;                              // of optimisers, one for each network
    double evaluations = 0;                        // of attacks
    std::vector<std::vector<double>> phases = {};  // seconds of one thread, by piece

    // With so many threads in all, each of which takes the next piece when it is done.
    double seconds(std::int64_t workers) const;
    Part& operator+=(const Part& other);
  };
  Part take_part();

  // Bytes of tensors: the most that a piece took when it was tried.
  std::int64_t piece_memory() const { return piece_memory_; }

 private:
  struct Tried {
    double fixed = 0, each = 0;  // seconds: of the piece, and of each unit
    Json result = {};
  };
  template <class Work>
  double time(const Work& work);
  const Tried& tried(const Job<Json>& job);
  double seconds_of(const Dataset& dataset, const std::vector<TrainOptions>& together);
  double validation_seconds(const Dataset& dataset, const TrainOptions& options);
  void add_seconds(double seconds);

  const bool on_processor_;
  std::set<std::string> networks_, cells_, kept_networks_, kept_cells_;
  std::size_t networks_before_ = 0, networks_kept_before_ = 0, cells_before_ = 0, cells_kept_before_ = 0;
  double steps_ = 0, evaluations_ = 0;
  std::vector<std::vector<double>> phases_;
  std::map<std::string, Tried> tried_;                                   // by kind
  std::map<std::string, double> training_seconds_, validation_seconds_;  // by what decides them
  std::int64_t piece_memory_ = 0;
};

}  // namespace holdfast::experiment
