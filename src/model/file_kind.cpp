#include "file_kind.h"

#include <algorithm>
#include <string_view>

#include "exported/read.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/zip.h"

namespace holdfast::model {
namespace {

constexpr const char* kWayOut =
    "save the model as a program: torch.export.save(torch.export.export(model, (inputs,)), \"model.pt2\")";

FileKind kind_of_archive(std::span<const std::byte> bytes, const std::string& path) {
  std::vector<std::string> names;
  for (const ZipMember& member : parse_zip(bytes, path)) names.push_back(member.name);
  const auto any = [&](const auto& has) { return std::any_of(names.begin(), names.end(), has); };
  const auto ends = [&](const char* end) { return any([&](const std::string& name) { return name.ends_with(end); }); };
  if (any(exported::is_record_of_program)) return FileKind::kExported;
  if (ends("/constants.pkl")) return FileKind::kTorchScript;
  if (ends("/data.pkl")) {
    input_error("{} is a file of torch.save: weights (a state_dict) or a pickled module, and a pickle is a program; {}", path,
                kWayOut);
  }
  if (ends("model.weights.h5") || ends("config.json")) {
    input_error("{} is a Keras model; convert it to ONNX (model.export(\"model.onnx\", format=\"onnx\"))", path);
  }
  if (ends(".npy")) input_error("{} is an archive of arrays (npz), not a model", path);
  return FileKind::kTorchScript;  // whose check says what is missing
}

bool is_text(std::string_view head) {
  return !head.empty() && std::all_of(head.begin(), head.end(), [](char letter) {
    const auto code = static_cast<unsigned char>(letter);
    return code >= 32 || letter == '\n' || letter == '\r' || letter == '\t';
  });
}

}  // namespace

FileKind find_file_kind(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view text = as_text(bytes);
  const std::string_view head = text.substr(0, 512);
  if (head.starts_with("PK\x03\x04")) {
    // Where the directory is missing, the reader of the likeliest kind says so.
    if (text.rfind("PK\x05\x06") == std::string_view::npos)
      return path.ends_with(".pt2") ? FileKind::kExported : FileKind::kTorchScript;
    return kind_of_archive(bytes, path);
  }
  if (head.starts_with("\x89HDF\r\n")) {
    input_error("{} is an HDF5 file (Keras); convert the model to ONNX (model.export(\"model.onnx\", format=\"onnx\"))", path);
  }
  if (head.substr(0, 8).ends_with("TFL3")) input_error("{} is a TensorFlow Lite model; convert the original model to ONNX", path);
  if (head.starts_with("\x93NUMPY")) input_error("{} is an array (npy), not a model", path);
  const bool named = path.ends_with(".onnx");
  // Before pickles: the length that begins the file may look like one.
  if (!named && head.size() > 8 && head[8] == '{') return FileKind::kSafetensors;
  if (head.starts_with("\x80\x02") || head.starts_with("\x80\x03") || head.starts_with("\x80\x04") ||
      head.starts_with("\x80\x05")) {
    input_error("{} is a pickle, and a pickle is a program; of a torch model, {}; of scikit-learn's, use holdfast from Python",
                path, kWayOut);
  }
  if (path.ends_with(".safetensors")) return FileKind::kSafetensors;
  // A protobuf has no first bytes of its own; ONNX begins with its version, field 1.
  if (named || (head.starts_with("\x08") && !is_text(head))) return FileKind::kOnnx;
  if (path.ends_with(".pt2")) return FileKind::kExported;
  if (is_text(head)) {
    input_error(
        "{} is a text, not a model; --model takes a torch.export (.pt2), TorchScript or ONNX file, or "
        "ARCHITECTURE:weights.safetensors",
        path);
  }
  return FileKind::kTorchScript;
}

}  // namespace holdfast::model
