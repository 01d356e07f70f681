// ADHD-200 brain networks of three sites in the TU format: unweighted graphs over 190 regions, of which 5 to 171 appear in a
// subject's graph. Every graph is laid out over all regions: an input is 1 where two regions are joined, else 0.
//
// Each site numbers its node labels by first appearance; the tables in its readme give the regions, and nodes here are regions:
// node 17 is n_17 at every site.
#include <charconv>

#include "graphs.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/tu_graphs.h"

namespace holdfast::data::adhd {

constexpr std::int64_t kAdhdRegions = 190;
const std::vector<std::string> kSites = {"KKI", "OHSU", "Peking_1"};

const MethodInfo kInfo{
    .name = "adhd",
    .summary = "brain networks of three sites: attention deficit or not (ADHD-200, TU format)",
    .citation =
        "Pan, Wu, Zhu, Long and Zhang, Task Sensitive Feature Exploration and Learning for Multi-Task Graph Classification, IEEE "
        "Transactions on Cybernetics 47(3), 2017",
    .options = {{"site", "all", one_of({"all", "KKI", "OHSU", "Peking_1"}), "which site's subjects"}},
    .notes =
        "247 graphs (KKI 83, OHSU 79, Peking_1 85) over 190 regions, split into five folds; the classes are the labels -1 and 1 "
        "of the "
        "files. A stand-in for the R2ET paper's 116-node ADHD graphs"};

struct Checksums {
  const char *adjacency, *graph_indicator, *graph_labels, *node_labels, *readme;
};

const Checksums kChecksums[] = {{"5c50be110d851f4919d867f449d08d79ed42df42dc7642c4fb2f8c570d1e607c",
                                 "5c6c025f502e6d417c053f111eb55d03956ec7392073de3b545ea589a6ff026a",
                                 "d290401390446bca784d04553aeba7746996a5eee7c74087b865d75aa674459e",
                                 "732157e1fa61b759de26e53c2e8f2a491737923128823d24dfa0ee63922a27d8",
                                 "37ae0e8de9704c22e95abf148318be3da7ecf76979ba5d5285be55dc315d12d7"},
                                {"0b021423f6ff121089009670f4c3a8d538e98b47c3419703253bb21a91dfec7a",
                                 "c1bc94ac8d3ab0fef8c183a44cd881c007836b07c9ec4879b30a6f0581209a01",
                                 "04ca8dcb191056ce301f56b67450cf2bd656726f49f4259eb74a956b10ded55c",
                                 "81565166fa8d62e1df1b9257a46774f6d3daba1db14ee19f749b99edcd61c967",
                                 "5cf26d8eefb4d4614b540b6a21bf4e9be5d65a567e797cdb504b3052c1caad1f"},
                                {"d64f57ce4c34abe86b8bed6d327112fd4f528ea2172ef9ce194f09d27adfc7a7",
                                 "163e2f6bf2dc4205e88712442a939b136abbb0fc38f1a92de891c6b5e07ebc3d",
                                 "92bc199e1526590aadf3906cf099fbae8c3209f1d98cbf98a8a20317caec0443",
                                 "e050b4b3f112f82dde731743ed3ebe5282dcd6878e318c753d9d20beb4ce313d",
                                 "cf6dba75e905254f242ae7809f13c86dc74b75ec8c1e3eb35edcdaaa4ce5504c"}};

// Gives the region that each node label stands for: "n_17" is 17.
std::map<std::int64_t, std::int64_t> regions_of_labels(const std::string& readme) {
  std::map<std::int64_t, std::int64_t> regions;
  for (const auto& [label, name] : read_tu_node_names(readme)) {
    std::int64_t region = -1;
    if (name.starts_with("n_")) std::from_chars(name.data() + 2, name.data() + name.size(), region);
    if (region < 0 || region >= kAdhdRegions) input_error("{}: '{}' is not a region n_0 to n_{}", readme, name, kAdhdRegions - 1);
    regions[label] = region;
  }
  return regions;
}

at::Tensor adjacency_over_regions(const TuGraphs& graphs, const std::map<std::int64_t, std::int64_t>& regions,
                                  const std::string& where) {
  std::vector<std::int64_t> region;
  for (const std::int64_t label : graphs.node_labels) {
    const auto found = regions.find(label);
    if (found == regions.end()) input_error("{}: node label {} is not in the readme's table", where, label);
    region.push_back(found->second);
  }
  at::Tensor inputs =
      at::zeros({static_cast<std::int64_t>(graphs.graph_labels.size()), Layout::graph(kAdhdRegions).inputs()}, at::kFloat);
  auto values = inputs.accessor<float, 2>();
  for (const auto& [from, to] : graphs.edges) {
    const std::int64_t a = region[static_cast<std::size_t>(from)], b = region[static_cast<std::size_t>(to)];
    // Both directions are listed; a region never joins itself in this layout.
    if (a != b)
      values[graphs.node_graph[static_cast<std::size_t>(from)]][edge_index(kAdhdRegions, std::min(a, b), std::max(a, b))] = 1;
  }
  return inputs;
}

class Adhd final : public DatasetLoader {
 public:
  explicit Adhd(const Options& options) : site_(options.word("site")) {}

  Source source() const override {
    Source source{
        .folder = "brain_tu", .licence = "not stated", .homepage = "https://chrsmrrs.github.io/datasets/docs/datasets/"};
    for (std::size_t i = 0; i < kSites.size(); ++i) {
      const std::string& site = kSites[i];
      const Checksums& sums = kChecksums[i];
      const auto add = [&](const std::string& file, const char* sha256) {
        source.files.push_back({.path = site + "/" + file,
                                .sha256 = {sha256},
                                .url = "https://www.chrsmrrs.com/graphkerneldatasets/" + site + ".zip",
                                .member = site + "/" + file});
      };
      add(site + "_A.txt", sums.adjacency);
      add(site + "_graph_indicator.txt", sums.graph_indicator);
      add(site + "_graph_labels.txt", sums.graph_labels);
      add(site + "_node_labels.txt", sums.node_labels);
      add("readme.txt", sums.readme);
    }
    return source;
  }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source(kInfo.name, source(), context.folder);
    std::vector<at::Tensor> inputs;
    std::vector<std::int64_t> labels;
    for (const std::string& site : kSites) {
      if (site_ != "all" && site_ != site) continue;
      const std::string place = folder + "/" + site;
      const TuGraphs graphs = read_tu_graphs(place, site);
      inputs.push_back(adjacency_over_regions(graphs, regions_of_labels(place + "/readme.txt"), place));
      for (const std::int64_t label : graphs.graph_labels) {
        if (label != -1 && label != 1) input_error("{}/{}_graph_labels.txt: label {} is neither -1 nor 1", place, site, label);
        labels.push_back(label == 1 ? 1 : 0);
      }
    }
    Dataset dataset = graph_dataset(at::cat(inputs), kAdhdRegions, std::move(labels), {"-1", "1"}, {0, 1}, context);
    dataset.notes.emplace_back("a stand-in for the R2ET paper's ADHD graphs: 190 regions instead of 116, unweighted");
    return dataset;
  }

 private:
  std::string site_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Adhd>(kInfo);
}

}  // namespace holdfast::data::adhd
