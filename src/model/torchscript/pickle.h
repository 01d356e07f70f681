// Pickles of TorchScript archives, read without building anything. Torch's own reader believes them: it takes the size of a
// tensor's memory from the pickle and not from the record, makes tables as long as a number in the pickle says, and takes any
// whole number for the index of a function. So every instruction is held against what torch's writer writes, before torch reads
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace holdfast::model::torchscript {

// What a pickle is for decides what may be in it.
enum class PickleKind {
  kValues,     // data.pkl, constants.pkl: objects and tensors whose bytes lie in records
  kShapes,     // traced_inputs.pkl: tensors whose shape alone is read
  kPlainData,  // debugging records: numbers, texts, lists and tuples
};

// The bytes of the record that holds the memory of a tensor, by its key in the pickle; nothing when there is no such record.
using RecordSize = std::function<std::optional<std::uint64_t>(const std::string& key)>;

// Throws kInput in one sentence that starts with `where` ("model.pt: data.pkl").
void check_pickle(std::span<const std::byte> pickle, const std::string& where, PickleKind kind, const RecordSize& record_size);

}  // namespace holdfast::model::torchscript
