// MUTAG: 188 molecules, mutagenic for a bacterium or not, in the TU format. A node is an atom, an edge a bond; hydrogen is left
// out.
//
// A layout needs nodes that mean the same in every graph. Here a node is "the third carbon of the molecule, in the order of the
// file": each element has as many nodes as the molecule with most of its atoms. An input is 1 where two atoms are joined, else 0.
#include <algorithm>
#include <array>

#include "graphs.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/tu_graphs.h"

namespace holdfast::data::mutag {

// C, N, O, F, I, Cl, Br: the node labels 0 to 6. The most atoms of each in one molecule.
constexpr std::array<std::int64_t, 7> kMostAtoms = {24, 4, 9, 3, 1, 5, 1};
constexpr std::int64_t kNodes = 47;  // their sum

const MethodInfo kInfo{.name = "mutag",
                       .summary = "molecules: mutagenic or not (MUTAG, TU format)",
                       .citation =
                           "Debnath et al., Structure-activity relationship of mutagenic aromatic and heteroaromatic nitro "
                           "compounds, Journal of Medicinal Chemistry 34(2), 1991",
                       .notes = "188 graphs of 10 to 28 atoms over 47 nodes, split into five folds"};

// The node of each atom in the layout.
std::vector<std::int64_t> nodes_of_atoms(const TuGraphs& graphs, const std::string& where) {
  std::vector<std::array<std::int64_t, kMostAtoms.size()>> seen(graphs.graph_labels.size());
  std::vector<std::int64_t> nodes;
  for (std::size_t atom = 0; atom < graphs.node_labels.size(); ++atom) {
    const std::int64_t element = graphs.node_labels[atom];
    if (element < 0 || element >= std::ssize(kMostAtoms)) input_error("{}: node label {} is not an element", where, element);
    const auto place = static_cast<std::size_t>(element);
    const std::int64_t before = seen[static_cast<std::size_t>(graphs.node_graph[atom])][place]++;
    if (before >= kMostAtoms[place])
      input_error("{}: a molecule has more than {} atoms with label {}", where, kMostAtoms[place], element);
    std::int64_t first = 0;
    for (std::size_t other = 0; other < place; ++other) first += kMostAtoms[other];
    nodes.push_back(first + before);
  }
  return nodes;
}

class Mutag final : public DatasetLoader {
 public:
  explicit Mutag(const Options&) {}

  // The Python package GraKeL carries the files for its tests.
  Source source() const override {
    Source source{.folder = "mutag",
                  .licence = "not stated",
                  .homepage = "https://chrsmrrs.github.io/datasets/docs/datasets/",
                  .package = "grakel",
                  .package_folders = python_package_folders("grakel/tests/data/MUTAG")};
    const auto add = [&](const std::string& file, const char* sha256) {
      source.files.push_back({.path = file, .sha256 = {sha256}, .url = kWheel, .member = "grakel/tests/data/MUTAG/" + file});
    };
    add("MUTAG_A.txt", "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2");
    add("MUTAG_graph_indicator.txt", "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056");
    add("MUTAG_graph_labels.txt", "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c");
    add("MUTAG_node_labels.txt", "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863");
    return source;
  }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source(kInfo.name, source(), context.folder);
    const TuGraphs graphs = read_tu_graphs(folder, "MUTAG");
    const std::vector<std::int64_t> nodes = nodes_of_atoms(graphs, folder);
    const auto count = static_cast<std::int64_t>(graphs.graph_labels.size());
    at::Tensor inputs = at::zeros({count, Layout::graph(kNodes).inputs()}, at::kFloat);
    auto values = inputs.accessor<float, 2>();
    for (const auto& [from, to] : graphs.edges) {  // both directions are listed
      const std::int64_t a = nodes[static_cast<std::size_t>(from)], b = nodes[static_cast<std::size_t>(to)];
      if (a != b)
        values[graphs.node_graph[static_cast<std::size_t>(from)]][edge_index(kNodes, std::min(a, b), std::max(a, b))] = 1;
    }
    std::vector<std::int64_t> labels;
    for (const std::int64_t label : graphs.graph_labels) {
      if (label != -1 && label != 1) input_error("{}/MUTAG_graph_labels.txt: label {} is neither -1 nor 1", folder, label);
      labels.push_back(label == 1 ? 1 : 0);
    }
    return graph_dataset(std::move(inputs), kNodes, std::move(labels), {"not mutagenic", "mutagenic"}, {0, 1}, context);
  }

 private:
  static constexpr const char* kWheel =
      "https://files.pythonhosted.org/packages/c9/9c/4e727cf567187d31b8d0290c8eb2421bf387c7d72bb83b258779641356bd/"
      "GraKeL-0.1.10-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl";
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Mutag>(kInfo);
}

}  // namespace holdfast::data::mutag
