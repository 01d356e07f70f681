// The list of datasets, one line each: the namespace of the dataset's file. `holdfast list` shows them in this order.
#include "holdfast/core/method_list.h"
#include "holdfast/data/dataset.h"

namespace holdfast::data {

#define HOLDFAST_DATASETS(METHOD)         \
  METHOD(DatasetLoader, adult)            \
  METHOD(DatasetLoader, bank)             \
  METHOD(DatasetLoader, compas)           \
  METHOD(DatasetLoader, breast_cancer)    \
  METHOD(DatasetLoader, german_credit)    \
  METHOD(DatasetLoader, diabetes)         \
  METHOD(DatasetLoader, adhd)             \
  METHOD(DatasetLoader, abide_ho111)      \
  METHOD(DatasetLoader, mutag)            \
  METHOD(DatasetLoader, mnist)            \
  METHOD(DatasetLoader, cifar10)          \
  METHOD(DatasetLoader, gtsrb)            \
  METHOD(DatasetLoader, flowers17)        \
  METHOD(DatasetLoader, imagenet_samples) \
  METHOD(DatasetLoader, image_folder)     \
  METHOD(DatasetLoader, csv)              \
  METHOD(DatasetLoader, arrays)           \
  METHOD(DatasetLoader, pairs)            \
  METHOD(DatasetLoader, synthetic)

HOLDFAST_REGISTRY(DatasetLoader, datasets, "dataset", HOLDFAST_DATASETS)

}  // namespace holdfast::data
