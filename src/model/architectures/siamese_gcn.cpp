// Whether two graphs over the same nodes are of the same class: one graph convolutional encoder (Kipf and Welling,
// "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017) for both sides, the magnitude of their
// difference, a linear layer.
//
//     H1 = act(S W1)   H2 = act(S H1 W2)   e = readout of H2   logits = |e1 - e2| W3        S = D^-1/2 (A + I) D^-1/2
//
// readout=mean: the mean over nodes. readout=nodes: e = flattened H2 times W4, which can tell one node from another; regions of a
// brain are not alike. convolutions=1 leaves the second one out.
//
// The input is the edges; nodes carry no features but which one they are (the identity matrix), as brain regions do. R2ET's model
// for pairs of brain networks; the paper does not describe it, so the sizes are ours.
#include "common.h"
#include "layers.h"

namespace holdfast::model::siamese_gcn {

std::vector<OptionSpec> siamese_gcn_options() {
  std::vector<OptionSpec> list = {{"nodes", 111, at_least(2), "nodes of a graph"},
                                  {"hidden", 32, at_least(1), "width of the graph convolutions"},
                                  {"convolutions", 2, between(1, 2), "how many"},
                                  {"readout", "mean", one_of({"mean", "nodes"}), "what makes an encoding of the nodes' numbers"},
                                  {"embedding", 8, at_least(1), "size of the encoding of readout=nodes"},
                                  {"classes", 2, at_least(2), "number of classes"}};
  for (OptionSpec& spec : activation_options()) list.push_back(std::move(spec));
  return list;
}

const MethodInfo kInfo{
    .name = "siamese_gcn",
    .summary = "same class or not, for pairs of graphs: one graph convolutional encoder for both sides",
    .citation = "Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, ICLR 2017",
    .options = siamese_gcn_options()};

class SiameseGcn final : public Architecture {
 public:
  explicit SiameseGcn(const Options& given)
      : nodes_(given.integer("nodes")),
        hidden_(given.integer("hidden")),
        embedding_(given.integer("embedding")),
        has_second_(given.integer("convolutions") == 2),
        reads_nodes_(given.word("readout") == "nodes"),
        classes_(given.integer("classes")),
        activation_(activation_of(given)) {}

  Layout layout() const override { return Layout::graph(nodes_, 2); }
  std::int64_t classes() const override { return classes_; }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    network.add("sides", op::FoldSides{});
    const int adjacency = network.add("adjacency", op::Adjacency{.nodes = nodes_});
    network.add("conv1", layers::linear(nodes_, hidden_));
    network.add("act1", activation_);
    if (has_second_) {
      const int mixed = network.add("conv2", layers::linear(hidden_, hidden_));
      network.add("propagate2", op::MatMul{}, {adjacency, mixed});
      network.add("act2", activation_);
    }
    if (reads_nodes_) {
      network.add("flatten", op::Flatten{});
      network.add("embedding", layers::linear(nodes_ * hidden_, embedding_));
    } else {
      network.add("mean", op::Mean{.dims = {1}});
    }
    network.add("distance", op::SideDistance{});
    network.add("output", layers::linear(reads_nodes_ ? embedding_ : hidden_, classes_));
    return network;
  }

 private:
  std::int64_t nodes_, hidden_, embedding_;
  bool has_second_, reads_nodes_;
  std::int64_t classes_;
  op::Activation activation_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add<SiameseGcn>(kInfo);
}

}  // namespace holdfast::model::siamese_gcn
