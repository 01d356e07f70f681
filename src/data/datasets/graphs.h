// What the datasets of brain graphs share.
#pragma once

#include <string>
#include <vector>

#include "holdfast/data/dataset.h"

namespace holdfast::data {

// `edges` is [N, nodes*(nodes-1)/2]; split into five stratified folds (context.fold is the test set).
Dataset graph_dataset(at::Tensor edges, std::int64_t nodes, std::vector<std::int64_t> labels, std::vector<std::string> classes,
                      std::pair<double, double> range, const LoadContext& context);

}  // namespace holdfast::data
