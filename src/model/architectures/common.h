// What the built-in architectures share: options for input, classes, activation and normalisation.
//
//     inputs         shape of a sample: 30 or 1x28x28 (of one side, for pairs)
//     classes        number of logits
//     activation     with its parameter beside it: activation=softplus,beta=0.5   activation=leaky_relu,slope=0.1
//     mean           the network first computes (x - mean) / deviation; one number, or one for each channel: 0.5x0.4x0.3
//     deviation
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/method.h"
#include "holdfast/model/model.h"

namespace holdfast::model {

struct CommonDefaults {
  const char* inputs = "";
  int classes = 10;
  const char* activation = "relu";
  double slope = 0.01;  // of leaky_relu
  const char* mean = "0";
  const char* deviation = "1";
};

// `inputs`, the architecture's own options, then the others of the list above.
std::vector<OptionSpec> common_options(const CommonDefaults& defaults, std::vector<OptionSpec> own = {});

// `activation` and its parameters alone, for architectures with another kind of input.
std::vector<OptionSpec> activation_options(const char* activation = "relu", double slope = 0.01);

// Throws kUsage for a parameter that the activation does not have.
op::Activation activation_of(const Options& options);
// Gives the layout of a vector or an image, as the option `inputs` says.
Layout input_layout(const Options& options);

// Reads the common options; throws kUsage for those that do not go together.
class CommonArchitecture : public Architecture {
 public:
  Layout layout() const override { return layout_; }
  std::int64_t classes() const override { return classes_; }

 protected:
  explicit CommonArchitecture(const Options& options);

  const op::Activation& activation() const { return activation_; }
  // Adds the node "normalise" unless it would change nothing.
  void add_normalisation(Network& network) const;
  // Throws kUsage unless the input is an image of at least `least` x `least` pixels.
  void require_image(const char* name, std::int64_t least) const;

  Layout layout_;

 private:
  std::int64_t classes_;
  op::Activation activation_;
  std::vector<double> mean_, deviation_;
};

}  // namespace holdfast::model
