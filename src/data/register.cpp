#include "builtin.h"

namespace holdfast {

const DatasetRegistry& datasets() {
  static const DatasetRegistry registry = [] {
    DatasetRegistry all("dataset");
    add_adult(all);
    add_bank(all);
    add_compas(all);
    add_breast_cancer(all);
    add_german_credit(all);
    add_adhd(all);
    add_abide_ho111(all);
    add_mnist(all);
    add_fashion_mnist(all);
    add_cifar10(all);
    add_gtsrb(all);
    add_flowers17(all);
    add_imagenet_samples(all);
    add_image_folder(all);
    add_csv(all);
    add_npy(all);
    add_idx(all);
    add_pairs(all);
    add_synthetic(all);
    return all;
  }();
  return registry;
}

}  // namespace holdfast
