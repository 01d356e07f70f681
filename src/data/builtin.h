// The built-in datasets: one function each, defined in the dataset's own file, that adds it to the registry.
#pragma once

#include "holdfast/data/dataset.h"

namespace holdfast {

using DatasetRegistry = Registry<DatasetLoader>;

// Tables.
void add_adult(DatasetRegistry& registry);
void add_bank(DatasetRegistry& registry);
void add_compas(DatasetRegistry& registry);
void add_breast_cancer(DatasetRegistry& registry);
void add_german_credit(DatasetRegistry& registry);
// Graphs.
void add_adhd(DatasetRegistry& registry);
void add_abide_ho111(DatasetRegistry& registry);
// Images.
void add_mnist(DatasetRegistry& registry);
void add_fashion_mnist(DatasetRegistry& registry);
void add_cifar10(DatasetRegistry& registry);
void add_gtsrb(DatasetRegistry& registry);
void add_flowers17(DatasetRegistry& registry);
void add_imagenet_samples(DatasetRegistry& registry);
// The user's own files, and what is made from other datasets or from nothing.
void add_csv(DatasetRegistry& registry);
void add_npy(DatasetRegistry& registry);
void add_idx(DatasetRegistry& registry);
void add_image_folder(DatasetRegistry& registry);
void add_pairs(DatasetRegistry& registry);
void add_synthetic(DatasetRegistry& registry);

}  // namespace holdfast
