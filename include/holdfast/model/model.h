// Models: inputs -> logits, in three kinds: a Network, an opaque TorchScript file, a callable (Python's models).
// What a model can do is asked for, never assumed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/layout.h"
#include "holdfast/model/network.h"
#include "holdfast/model/outputs.h"

namespace holdfast::model {

struct Capabilities {
  bool gradients = true;         // logits can be differentiated by the inputs
  bool double_backward = true;   // gradients of gradients, so that attributions can be attacked by gradient
  bool layers = false;           // it is a Network: surrogates and layer-wise explainers work
  bool side_by_side = true;      // several threads may run it at once
  bool float64 = false;          // a double-precision copy can be made
  bool scale_invariant = false;  // logits(a x) = logits(x) for every a > 0: the network standardises its input first
  bool known_apart = false;      // it was tried: a sample's logits do not depend on the others of its batch
};

class Model {
 public:
  virtual ~Model() = default;

  // [B, classes], differentiable by `inputs` [B, sample...]; evaluation mode. Leaves the model as it was.
  virtual at::Tensor logits(const at::Tensor& inputs) const = 0;
  // Gives the logits under a rule; models without layers throw kUsage for any rule but the exact one.
  virtual at::Tensor logits(const at::Tensor& inputs, const Rule& rule) const;

  // What the model really gives, where that is known: outputs.h says how it becomes logits. Where it is auto, logits() gives the
  // outputs as they are, [B, n] with n >= 1, and with_logits() makes a model of it.
  virtual OutputKind output_kind() const { return OutputKind::kLogits; }
  virtual Capabilities capabilities() const = 0;
  virtual const Network* network() const { return nullptr; }
  // Trainable numbers, or nothing where they cannot be seen.
  virtual std::optional<std::int64_t> parameter_count() const { return std::nullopt; }
  // Gives the same model in double precision, or null.
  virtual std::unique_ptr<Model> in_double() const { return nullptr; }
  virtual at::Device device() const = 0;
  virtual at::ScalarType dtype() const = 0;
  // Shape of a sample when the model knows it.
  virtual std::optional<Layout> layout() const { return std::nullopt; }
  // How it was asked for: "mlp:weights.safetensors", "model.pt".
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  // One paragraph for `describe FILE`: kind, operations, parameters, and what it cannot do and why.
  virtual std::string describe() const = 0;

 private:
  std::string name_;
};

std::unique_ptr<Model> make_model(Network network, std::optional<Layout> layout = std::nullopt);
std::unique_ptr<Model> make_model(std::function<at::Tensor(const at::Tensor&)> function, Capabilities capabilities,
                                  at::Device device);

// Architectures are methods with options; building one gives a Network with fresh weights keyed by `seed`.
class Architecture {
 public:
  virtual ~Architecture() = default;
  // The network with room for its weights, which hold nothing yet: memory is taken when they are filled.
  virtual Network structure() const = 0;
  // The network with fresh weights.
  Network build(std::uint64_t seed) const;
  virtual Layout layout() const = 0;  // of the input
  virtual std::int64_t classes() const = 0;
  // Whether published weights exist for it.
  virtual bool has_pretrained() const { return false; }
  // Network with published weights from the data folder; throws kInput when there are none or they are missing.
  virtual Network pretrained() const;
};

const Registry<Architecture>& architectures();

// The architecture's call with its input and classes set from a dataset's, where it does not set them itself. Throws kUsage
// when what it sets contradicts them, or when it takes no such input.
//     ("mlp(hidden=64)", a vector of 30, 3 classes) -> "mlp(inputs=30,hidden=64,classes=3)"
std::string fit_architecture(const std::string& call, const Layout& layout, std::int64_t classes);

// Weights with the architecture's canonical call in the file's metadata.
void save_network(const std::string& path, const Network& network, const std::string& architecture);

// How a model file is to be read, where the file itself does not say it.
struct ModelOptions {
  OutputKind output_kind = OutputKind::kAuto;
  std::string output_name = {};  // the output that counts, of a file with several; empty: `logits`, else the first
  std::string embedding = {};    // the embedding that token ids go to; empty: the one that they are seen to go to
};

// `M` of the command line: a TorchScript file, ARCHITECTURE:weights.safetensors or ARCHITECTURE:pretrained. Options that the
// weights file records need not be repeated, nor need the architecture; those written beside it win. Throws kUsage or kInput
// in one sentence. Where its output_kind() is auto, with_logits() must be asked before it is used.
// The file that such a text names, or empty for published weights.
std::string model_file(const std::string& text);
std::unique_ptr<Model> load_model(const std::string& text, at::Device device = at::kCPU, const ModelOptions& options = {});

}  // namespace holdfast::model
