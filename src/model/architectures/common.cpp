#include "common.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"

namespace holdfast::model {
namespace {

// Every parameter that an activation can have, and which has it.
struct ActivationParameter {
  const char* name;
  const char* of;
};
constexpr ActivationParameter kParameters[] = {{"beta", "softplus"}, {"slope", "leaky_relu"}, {"alpha", "elu"}};

// "0.5" or "0.5x0.4x0.3".
std::vector<double> numbers_of(const Options& options, const char* name) {
  const std::string& text = options.word(name);
  std::vector<double> numbers;
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    double number = 0;
    const auto [stop, status] = std::from_chars(next, end, number);
    if (status != std::errc() || !std::isfinite(number)) break;
    numbers.push_back(number);
    if (stop == end) return numbers;
    if (*stop != 'x') break;
    next = stop + 1;
  }
  usage_error("{}={}: give a number, or one for each channel such as 0.5x0.4x0.3", name, text);
}

}  // namespace

op::Activation activation_of(const Options& options) {
  const std::string& name = options.word("activation");
  MethodCall call{.name = name};
  for (const auto& [parameter, of] : kParameters) {
    if (name == of) {
      call.options.emplace_back(parameter, fmt::format("{}", options.real(parameter)));
    } else if (options.given(parameter)) {
      usage_error("{}: activation {} has no {}; {} has", options.canonical(), name, parameter, of);
    }
  }
  const std::string written =
      call.options.empty() ? call.name : fmt::format("{}({}={})", call.name, call.options[0].first, call.options[0].second);
  return parse_activation(written);
}

Layout input_layout(const Options& options) {
  const std::vector<std::int64_t> sizes = parse_sizes(options.word("inputs"), "inputs");
  if (sizes.size() == 1) return Layout::vector(sizes[0]);
  if (sizes.size() == 3) return Layout::grid(sizes[0], sizes[1], sizes[2]);
  usage_error("inputs={}: write a length such as 30 or an image's channels, height and width such as 3x32x32",
              options.word("inputs"));
}

std::vector<OptionSpec> activation_options(const char* activation, double slope) {
  std::vector<std::string> names;
  for (const MethodInfo& info : activation_infos()) names.push_back(info.name);
  return {{"activation", activation, one_of(names), "between the layers"},
          {"beta", 1.0, above(0), "sharpness of activation=softplus"},
          {"slope", slope, between(0, 1), "slope for negative values of activation=leaky_relu"},
          {"alpha", 1.0, above(0), "depth for negative values of activation=elu"}};
}

std::vector<OptionSpec> common_options(const CommonDefaults& defaults, std::vector<OptionSpec> own) {
  std::vector<OptionSpec> options = {{"inputs", defaults.inputs, anything(), "shape of a sample, such as 30 or 3x32x32"}};
  const auto append = [&](std::vector<OptionSpec> more) { std::move(more.begin(), more.end(), std::back_inserter(options)); };
  append(std::move(own));
  append({{"classes", defaults.classes, at_least(2), "number of classes"}});
  append(activation_options(defaults.activation, defaults.slope));
  append({{"mean", defaults.mean, anything(),
           "the network first computes (x - mean) / deviation: a number, or one a channel, 0.5x0.4x0.3"},
          {"deviation", defaults.deviation, anything(), "see mean"}});
  return options;
}

CommonArchitecture::CommonArchitecture(const Options& options)
    : layout_(input_layout(options)),
      classes_(options.integer("classes")),
      activation_(activation_of(options)),
      mean_(numbers_of(options, "mean")),
      deviation_(numbers_of(options, "deviation")) {
  const auto channels = static_cast<std::size_t>(layout_.sample_shape()[0]);
  for (const auto& [name, values] : {std::pair("mean", &mean_), std::pair("deviation", &deviation_)}) {
    if (values->size() != 1 && values->size() != channels) {
      usage_error("{} has {} numbers; the input has {} channels", name, values->size(), channels);
    }
  }
  for (const double deviation : deviation_) {
    if (!(deviation > 0)) usage_error("deviation={}: it must be above 0", deviation);
  }
}

void CommonArchitecture::add_normalisation(Network& network) const {
  const auto is = [](double wanted) { return [wanted](double value) { return value == wanted; }; };
  if (std::all_of(mean_.begin(), mean_.end(), is(0)) && std::all_of(deviation_.begin(), deviation_.end(), is(1))) return;
  const at::Tensor mean = at::tensor(mean_, at::kDouble), deviation = at::tensor(deviation_, at::kDouble);
  const auto scale_and_shift = at::broadcast_tensors({deviation.reciprocal(), -mean / deviation});
  network.add("normalise", op::Affine{.scale = scale_and_shift[0].to(at::kFloat).contiguous(),
                                      .shift = scale_and_shift[1].to(at::kFloat).contiguous()});
}

void CommonArchitecture::require_image(const char* name, std::int64_t least) const {
  if (layout_.kind != Layout::Kind::kGrid)
    usage_error("{}: the input is a {}; {} takes images such as inputs=3x32x32", name, layout_.describe(), name);
  if (layout_.height < least || layout_.width < least) {
    usage_error("{}: the input is a {}; it must have at least {} x {} pixels", name, layout_.describe(), least, least);
  }
}

}  // namespace holdfast::model
