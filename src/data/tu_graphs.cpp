#include "holdfast/data/tu_graphs.h"

#include <charconv>
#include <sstream>

#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast::data {
namespace {

std::int64_t whole(const std::string& text, const std::string& path, std::int64_t line) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size())
    input_error("{}:{}: '{}' is not a whole number", path, line, text);
  return number;
}

// A file of `columns` whole numbers a line, all in [low, high], minus `base`.
std::vector<std::vector<std::int64_t>> read_numbers(const std::string& path, std::size_t columns, std::int64_t base,
                                                    std::int64_t high) {
  const CsvTable csv = read_csv(path, {.header = false});
  std::vector<std::vector<std::int64_t>> rows;
  for (std::size_t i = 0; i < csv.rows.size(); ++i) {
    if (csv.rows[i].size() != columns)
      input_error("{}:{}: {} fields, expected {}", path, csv.lines[i], csv.rows[i].size(), columns);
    std::vector<std::int64_t>& row = rows.emplace_back();
    for (const std::string& field : csv.rows[i]) {
      const std::int64_t number = whole(field, path, csv.lines[i]);
      if (number < base || number > high) input_error("{}:{}: {} is not in {} to {}", path, csv.lines[i], number, base, high);
      row.push_back(number - base);
    }
  }
  return rows;
}

std::vector<std::int64_t> read_column(const std::string& path) {
  const CsvTable csv = read_csv(path, {.header = false});
  std::vector<std::int64_t> column;
  for (std::size_t i = 0; i < csv.rows.size(); ++i) column.push_back(whole(csv.rows[i][0], path, csv.lines[i]));
  if (column.empty()) input_error("{} is empty", path);
  return column;
}

}  // namespace

TuGraphs read_tu_graphs(const std::string& folder, const std::string& name) {
  const std::string base = folder + "/" + name + "_";
  TuGraphs graphs;
  graphs.graph_labels = read_column(base + "graph_labels.txt");
  graphs.node_labels = read_column(base + "node_labels.txt");
  const auto nodes = static_cast<std::int64_t>(graphs.node_labels.size());
  const auto count = static_cast<std::int64_t>(graphs.graph_labels.size());

  const std::string indicator = base + "graph_indicator.txt";
  for (const auto& row : read_numbers(indicator, 1, 1, count)) graphs.node_graph.push_back(row[0]);
  if (graphs.node_graph.size() != graphs.node_labels.size()) {
    input_error("{} has {} nodes, but {}node_labels.txt has {}", indicator, graphs.node_graph.size(), base, nodes);
  }
  const std::string adjacency = base + "A.txt";
  for (const auto& row : read_numbers(adjacency, 2, 1, nodes)) {
    if (graphs.node_graph[static_cast<std::size_t>(row[0])] != graphs.node_graph[static_cast<std::size_t>(row[1])]) {
      input_error("{}: the edge {}, {} joins two graphs", adjacency, row[0] + 1, row[1] + 1);
    }
    graphs.edges.emplace_back(row[0], row[1]);
  }
  return graphs;
}

std::map<std::int64_t, std::string> read_tu_node_names(const std::string& readme) {
  std::istringstream lines(read_text(readme));
  std::map<std::int64_t, std::string> names;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("=== Node Label Conversion") != std::string::npos) {
      inside = true;
    } else if (line.starts_with("===")) {
      inside = false;
    } else if (inside) {
      std::istringstream fields(line);
      std::int64_t label = 0;
      std::string name;
      if (fields >> label >> name) names[label] = name;
    }
  }
  if (names.empty()) input_error("{} has no table of node labels (=== Node Label Conversion ===)", readme);
  return names;
}

}  // namespace holdfast::data
