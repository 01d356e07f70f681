// Graph collections in the TU format (Morris et al., "TUDataset", 2020): NAME_A.txt (edges between nodes counted from 1),
// NAME_graph_indicator.txt (the graph of each node), NAME_graph_labels.txt, NAME_node_labels.txt. Needs no torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::data {

struct TuGraphs {
  std::vector<std::int64_t> graph_labels;                    // one a graph
  std::vector<std::int64_t> node_labels;                     // one a node
  std::vector<std::int64_t> node_graph;                      // from 0, one a node
  std::vector<std::pair<std::int64_t, std::int64_t>> edges;  // nodes, from 0
};

// Throws kInput naming file and line: a field that is no whole number, a node or graph that does not exist, an edge
// between two graphs.
TuGraphs read_tu_graphs(const std::string& folder, const std::string& name);

// What the integers of NAME_node_labels.txt stand for, from the table in readme.txt: label -> "n_17". Collections
// number their labels by first appearance, so that only this makes the nodes of two collections comparable.
std::map<std::int64_t, std::string> read_tu_node_names(const std::string& readme);

}  // namespace holdfast::data
