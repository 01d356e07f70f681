#include "published.h"

#include <charconv>
#include <cstring>

#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/method.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"

namespace holdfast::model {
namespace {

std::size_t parse_offset(const std::string& text, const std::string& where) {
  std::size_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) input_error("{}: '{}' is not an offset", where, text);
  return value;
}

at::Tensor tensor_at(const Bytes& bytes, std::size_t offset, std::vector<std::int64_t> shape, const std::string& where) {
  if (offset > bytes.size() / sizeof(float)) input_error("{}: offset {} lies beyond the end of the weights", where, offset);
  const std::size_t start = offset * sizeof(float);
  const std::size_t length = checked_bytes(shape, ElementType::kFloat32, bytes.size() - start, where);
  RawArray array{.type = ElementType::kFloat32, .shape = std::move(shape), .bytes = Bytes(length)};
  std::memcpy(array.bytes.data(), bytes.data() + start, length);
  return to_tensor(std::move(array));
}

}  // namespace

std::vector<Parameter> read_published(const std::string& name) {
  const std::string stem = data_folder() + "/models/" + name;
  if (!file_exists(stem + ".f32") || !file_exists(stem + ".csv")) {
    input_error("the published weights {}.f32 and .csv are not there; HOLDFAST_DATA names the folder that holds models/", stem);
  }
  const Bytes bytes = read_bytes(stem + ".f32");
  const std::string table_path = stem + ".csv";
  const CsvTable table = read_csv(table_path);
  const std::size_t names = table.column("name", table_path), shapes = table.column("shape", table_path),
                    offsets = table.column("offset_floats", table_path);
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string where = fmt::format("{}:{}", table_path, table.lines[i]);
    const std::vector<std::string>& row = table.rows[i];
    parameters.push_back(
        {row[names], tensor_at(bytes, parse_offset(row[offsets], where), parse_sizes(row[shapes], where), where)});
  }
  return parameters;
}

}  // namespace holdfast::model
