// Reading a TorchScript graph into a Network: a walk over the graph's nodes in which every value is either known (a weight, an
// option), the batch size, or the value of a Network's node. The shapes of all values follow from that of a sample, so a
// size in the middle of the graph is a plain number.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/serialization/import.h>

#include "holdfast/core/torch.h"
#include "holdfast/model/network.h"
#include "script.h"

namespace holdfast::model::torchscript {

// Why a graph, or a graph with samples of one shape, cannot be read. Never leaves `import_network`.
class NotReadable : public std::exception {
 public:
  explicit NotReadable(std::string reason) : reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_;
};

// The shape of the samples does not go through; another one may.
class DoesNotFit : public NotReadable {
 public:
  using NotReadable::NotReadable;
};

// The node that holds a tensor now. Values that are one tensor share a slot, so that an in-place operation moves them all.
struct TensorSlot {
  int node = 0;
  int storage = 0;  // slots of views of one tensor have the same
};

struct Symbol;
struct Known {
  at::IValue value;
  bool from_shape = false;  // it would be another one for samples of another shape
};
struct Tracked {
  std::shared_ptr<TensorSlot> slot;
};
struct BatchSize {};
struct Sequence {  // lists and tuples with anything in them that is not known
  std::vector<Symbol> items;
};
struct Symbol {
  std::variant<Known, Tracked, BatchSize, Sequence> is;
};

class Importer {
 public:
  Importer(const std::vector<std::int64_t>& sample_shape, at::TensorOptions options);

  // Throws NotReadable.
  void read(const torch::jit::Graph& graph, const torch::jit::Module& module);

  Network network() const;
  // Whether options were taken from sizes, so that the Network holds for samples of this shape only.
  bool depends_on_shape() const { return depends_on_shape_; }

  // For operations (layers.cpp, elementwise.cpp, views.cpp):
  const Symbol& symbol(const torch::jit::Value* value) const;
  // Appends a node; `name` may be empty. Throws DoesNotFit.
  int add(Operation operation, std::vector<int> inputs, const std::string& name = {});
  at::IntArrayRef shape(int node) const { return shapes_[static_cast<std::size_t>(node)]; }
  Node& node(int position) { return nodes_[static_cast<std::size_t>(position)]; }
  at::TensorOptions options() const { return options_; }  // precision and device of the model
  void set_depends_on_shape() { depends_on_shape_ = true; }
  Symbol fresh(int node);                         // a new tensor
  Symbol view_of(const Tracked& base, int node);  // one that shares memory with another

 private:
  void read_block(const torch::jit::Block* block);
  void read_node(const torch::jit::Node* node);
  void read_branch(const torch::jit::Node* node);
  bool read_structure(const torch::jit::Node* node);  // lists, tuples, sizes; false: it is something else
  bool fold(const torch::jit::Node* node);            // everything it reads is known; false: it is not
  bool reads_batch_size(const torch::jit::Node* node) const;
  void write_in_place(const torch::jit::Node* node, const Symbol& result);
  void bind(const torch::jit::Value* value, Symbol symbol) { symbols_[value] = std::move(symbol); }

  std::vector<Node> nodes_;
  std::vector<std::vector<std::int64_t>> shapes_;  // of each node's value
  std::unordered_map<const torch::jit::Value*, Symbol> symbols_;
  std::unordered_set<std::string> names_;
  at::TensorOptions options_;
  int storages_ = 0;
  bool depends_on_shape_ = false;
};

// The shape of what an operation gives, from those of what it reads. Throws DoesNotFit.
std::vector<std::int64_t> shape_after(const Operation& operation, const std::vector<at::IntArrayRef>& read);

// One operation of the graph, its arguments by name.
class OperatorCall {
 public:
  OperatorCall(Importer& importer, const torch::jit::Node* node) : importer_(importer), node_(node) {}

  Importer& importer() const { return importer_; }
  const torch::jit::Node* node() const { return node_; }
  bool has(const char* argument) const { return node_->hasNamedInput(argument); }
  bool is_tensor(const char* argument) const;  // a value of the network, not a constant
  bool is_none(const char* argument) const;
  int tensor(const char* argument) const;  // its node
  const Tracked& tracked(const char* argument) const;
  at::IntArrayRef shape(const char* argument) const { return importer_.shape(tensor(argument)); }
  at::Tensor constant(const char* argument) const;  // undefined for None; numbers become tensors
  std::int64_t integer(const char* argument) const;
  double real(const char* argument) const;
  bool flag(const char* argument) const;
  std::string text(const char* argument) const;
  std::vector<std::int64_t> integers(const char* argument) const;  // a number alone is a list of one
  const Symbol& symbol(const char* argument) const;
  // A dimension of a tensor, counted from the front; the batch's is refused.
  std::int64_t dimension(const char* argument, const char* of) const;
  // "fc" for a weight called "self.fc.weight"; empty when it has no name of its own.
  std::string owner(const char* weight) const;

  Symbol add(Operation operation, std::vector<int> inputs, const std::string& name = {}) const {
    return importer_.fresh(importer_.add(std::move(operation), std::move(inputs), name));
  }
  // "operation aten::clamp (net.py:3) <why>"
  [[noreturn]] void refuse(const std::string& why) const;
  // Refuses what another shape of samples may cure: throws DoesNotFit.
  [[noreturn]] void misfit(const std::string& why) const;

 private:
  std::string sentence(const std::string& why) const;

  Importer& importer_;
  const torch::jit::Node* node_;
};

// The reader of an operation, by its name without the underscore of in-place forms, or null.
using OperationReader = Symbol (*)(const OperatorCall&);
OperationReader find_reader(const std::string& name);

// Whole numbers of a symbol. Throws NotReadable through `call`.
std::int64_t as_integer(const Symbol& symbol, const OperatorCall& call);

struct Imported {
  Network network;
  std::vector<std::int64_t> sample_shape;  // of the samples it was read and checked with
  bool depends_on_shape = false;
};

// The script as a Network that was found to give the same logits and input gradients, or the reason why there is none.
std::variant<Imported, std::string> import_network(const Script& script);

// Shapes of samples that the script may take, the likeliest first.
std::vector<std::vector<std::int64_t>> candidate_shapes(const Script& script);

// The tables of operations that can be read, one for each file of readers.
using ReaderTable = std::unordered_map<std::string, OperationReader>;

const ReaderTable& layer_readers();        // weights and pooling
const ReaderTable& elementwise_readers();  // activations and arithmetic
const ReaderTable& shape_readers();        // views, parts and joins

}  // namespace holdfast::model::torchscript
