#include "graphs.h"

#include "holdfast/core/torch.h"
#include "holdfast/data/splits.h"

namespace holdfast::data {

Dataset graph_dataset(at::Tensor edges, std::int64_t nodes, std::vector<std::int64_t> labels, std::vector<std::string> classes,
                      std::pair<double, double> range, const LoadContext& context) {
  Split split = fold_split(labels, context.seed, context.fold);
  Dataset dataset;
  dataset.inputs = std::move(edges);
  dataset.labels = at::tensor(labels, at::kLong);
  dataset.schema = Schema::of(Layout::graph(nodes));
  dataset.schema.range = range;
  dataset.schema.classes = std::move(classes);
  dataset.train = std::move(split.train);
  dataset.validation = std::move(split.validation);
  dataset.test = std::move(split.test);
  return dataset;
}

}  // namespace holdfast::data
