// What a model file is, found out from its first bytes and, of an archive, from the names of its records.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace holdfast::model {

enum class FileKind { kTorchScript, kExported, kOnnx, kSafetensors };

// Throws kInput in one sentence for files of other kinds: what the file is, where it is known, and what to do instead.
FileKind find_file_kind(std::span<const std::byte> bytes, const std::string& path);

}  // namespace holdfast::model
