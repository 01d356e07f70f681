// Whether two graphs over the same nodes are of the same class: one graph convolutional encoder (Kipf and Welling,
// "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017) for both sides, the magnitude of their
// difference, a linear layer.
//
//     H1 = act(S W1)   H2 = act(S H1 W2)   e = mean of H2 over nodes   logits = |e1 - e2| W3        S = D^-1/2 (A + I) D^-1/2
//
// The input is the edges; nodes carry no features but which one they are (the identity matrix), as brain regions do. R2ET's model
// for pairs of brain networks; the paper does not describe it, so the sizes are ours.
#include "common.h"
#include "layers.h"

namespace holdfast::model::siamese_gcn {

std::vector<OptionSpec> siamese_gcn_options() {
  std::vector<OptionSpec> list = {{"nodes", 111, at_least(2), "nodes of a graph"},
                                  {"hidden", 32, at_least(1), "width of both graph convolutions"},
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
    const int mixed = network.add("conv2", layers::linear(hidden_, hidden_));
    network.add("propagate2", op::MatMul{}, {adjacency, mixed});
    network.add("act2", activation_);
    network.add("mean", op::Mean{.dims = {1}});
    network.add("distance", op::SideDistance{});
    network.add("output", layers::linear(hidden_, classes_));
    return network;
  }

 private:
  std::int64_t nodes_, hidden_, classes_;
  op::Activation activation_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add<SiameseGcn>(kInfo);
}

}  // namespace holdfast::model::siamese_gcn
