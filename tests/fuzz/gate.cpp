// A gate as a person writes it; `curvature` stands for all measures, which need torch.
#include "holdfast/experiment/gate.h"

#include "holdfast/core/method.h"

#include "fuzz.h"

using namespace holdfast::experiment;

void holdfast::fuzz_gate(std::span<const std::byte> input) {
  const MeasureName curvature = [](const std::string& call) -> std::optional<std::string> {
    return parse_method_call(call).name == "curvature" ? std::optional<std::string>("curvature") : std::nullopt;
  };
  const Gate gate = parse_gate(std::string(as_text(input)), curvature);
  require(parse_gate(gate.metric + "." + gate.field + gate.comparison + fmt::format("{}", gate.limit), curvature).metric ==
          gate.metric);
  require(!gate.met_by(std::nullopt));
}
