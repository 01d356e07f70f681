// From a script to a Network that is known to compute the same.
#include "torchscript_import.h"
#include "torchscript_trial.h"

namespace holdfast::torchscript {
namespace {

// Throws NotReadable, also when the script itself does not take samples of this shape.
Imported read_for(const Script& script, const std::vector<std::int64_t>& sample_shape) {
  Importer importer(sample_shape, at::TensorOptions(script.device).dtype(script.dtype));
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
  if (script.runs_as_is) return *script.runs_as_is;
  std::string reason =
      script.traced_shape ? "" : "no shape of samples was found that goes through it; a traced file tells its own";
  bool told = false;  // the likeliest shape's reason is the one to tell, unless it only says that the shape was wrong
  for (const std::vector<std::int64_t>& shape : candidate_shapes(script)) {
    try {
      return read_for(script, shape);
    } catch (const DoesNotFit& error) {
      if (script.traced_shape) reason = error.what();
    } catch (const NotReadable& error) {
      if (!told) reason = error.what();
      told = true;
    }
  }
  return reason;
}

}  // namespace holdfast::torchscript
