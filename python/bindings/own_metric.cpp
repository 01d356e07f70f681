// Metrics of Python: arrays of folded maps in, [pairs, ...] each, one value for each pair out.
#include <cstring>

#include <pybind11/numpy.h>

#include "holdfast/metric/batch_metric.h"
#include "own_method.h"

namespace holdfast::python {
namespace own_metric {

// [pairs, sides, ...] as Python sees folded maps.
std::vector<py::ssize_t> shape_of(const Layout& layout, std::size_t pairs) {
  std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(pairs)};
  if (layout.sides > 1) shape.push_back(layout.sides);
  if (layout.kind == Layout::Kind::kGrid) {
    shape.push_back(layout.height);
    shape.push_back(layout.width);
  } else {
    shape.push_back(layout.side_features());
  }
  return shape;
}

// A copy: Python may keep it.
py::array_t<double> array_of(std::span<const double> rows, const Layout& layout, std::size_t pairs) {
  py::array_t<double> array(shape_of(layout, pairs));
  std::memcpy(array.mutable_data(), rows.data(), rows.size_bytes());
  return array;
}

class OwnMetric final : public BatchMetric {
 public:
  OwnMetric(const OwnMethod& method, const Options& options)
      : BatchMetric(options.complete(), facts_of(method, options)), function_(method.function) {
    const PythonTurn turn;
    keywords_ = share(keywords_of(method.info, options));
  }

  std::vector<double> compare_rows(std::span<const double> original, std::span<const double> perturbed,
                                   const Schema& schema) const override {
    const std::size_t pairs = original.size() / static_cast<std::size_t>(schema.layout.features());
    const PythonTurn turn;
    const py::object result =
        (*function_)(array_of(original, schema.layout, pairs), array_of(perturbed, schema.layout, pairs), **py::dict(*keywords_));
    const auto values = py::cast<py::array_t<double, py::array::c_style | py::array::forcecast>>(result);
    return {values.data(), values.data() + pairs};
  }

 private:
  static Facts facts_of(const OwnMethod& method, const Options& options) {
    Facts facts{.direction = method.facts.at("higher_is_more_alike").get<bool>() ? Direction::kHigherIsMoreAlike
                                                                                 : Direction::kLowerIsMoreAlike,
                .perfect = method.facts.at("perfect").get<double>(),
                .floor = method.facts.at("floor").is_null() ? std::numeric_limits<double>::infinity()
                                                            : method.facts.at("floor").get<double>()};
    if (const Json& name = method.facts.at("top_count"); !name.is_null())
      facts.top_count = options.integer(name.get<std::string>());
    return facts;
  }

  SharedObject function_, keywords_;
};

}  // namespace own_metric

void extend_metrics(OwnMethod method) {
  const auto shared = std::make_shared<const OwnMethod>(std::move(method));
  metrics_to_extend().extend(
      shared->info, [shared](const Options& options) { return std::make_unique<own_metric::OwnMetric>(*shared, options); });
}

}  // namespace holdfast::python
