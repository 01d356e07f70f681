#include "builtin.h"

namespace holdfast {

const DatasetRegistry& datasets() {
  static const DatasetRegistry registry = [] {
    DatasetRegistry all("dataset");
    return all;
  }();
  return registry;
}

}  // namespace holdfast
