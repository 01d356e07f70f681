// From a script to a Network that is known to compute the same.
#include "torchscript_import.h"
#include "torchscript_trial.h"

namespace holdfast::torchscript {
namespace {

// Throws NotReadable, also when the script itself does not take samples of this shape.
Imported read_for(const Script& script, const std::vector<std::int64_t>& sample_shape) {
  Importer importer(sample_shape, script.dtype);
  importer.read(*script.graph(), script.module);
  if (importer.depends_on_shape() && !script.traced_shape) {
    throw NotReadable("its operations depend on the shape of the samples, which only a traced file tells");
  }
  Imported imported{importer.network(), sample_shape, importer.depends_on_shape()};
  const std::string difference = difference_from(script, imported.network, trial_inputs(script, sample_shape));
  if (!difference.empty()) throw NotReadable(difference);
  return imported;
}

}  // namespace

std::variant<Imported, std::string> import_network(const Script& script) {
  if (script.keeps_state) return "it writes to its own attributes";
  std::string reason;  // that of the likeliest shape
  for (const std::vector<std::int64_t>& shape : candidate_shapes(script)) {
    try {
      return read_for(script, shape);
    } catch (const NotReadable& error) {
      if (reason.empty()) reason = error.what();
    }
  }
  return reason.empty() ? "the shape of its samples cannot be told" : reason;
}

}  // namespace holdfast::torchscript
