#include "holdfast/core/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "holdfast/core/device_random.h"
#include "holdfast/core/error.h"
#include "holdfast/core/large_tensor.h"
#include "holdfast/core/memory.h"
#include "holdfast/core/npy.h"
#include "holdfast/core/random_words.h"
#include "holdfast/core/torch.h"

namespace holdfast {
namespace {

constexpr std::array<std::pair<ElementType, at::ScalarType>, 13> kTypes{{
    {ElementType::kBool, at::kBool},
    {ElementType::kUint8, at::kByte},
    {ElementType::kInt8, at::kChar},
    {ElementType::kUint16, at::kUInt16},
    {ElementType::kInt16, at::kShort},
    {ElementType::kUint32, at::kUInt32},
    {ElementType::kInt32, at::kInt},
    {ElementType::kUint64, at::kUInt64},
    {ElementType::kInt64, at::kLong},
    {ElementType::kFloat16, at::kHalf},
    {ElementType::kBfloat16, at::kBFloat16},
    {ElementType::kFloat32, at::kFloat},
    {ElementType::kFloat64, at::kDouble},
}};

at::ScalarType scalar_type(ElementType type) {
  for (const auto& [own, torchs] : kTypes) {
    if (own == type) return torchs;
  }
  HOLDFAST_CHECK(false);
  return at::kFloat;
}

ElementType element_type(at::ScalarType type) {
  for (const auto& [own, torchs] : kTypes) {
    if (torchs == type) return own;
  }
  input_error("a tensor of {} cannot be written; convert it to float32 first", c10::toString(type));
}

bool is_integer(ElementType type) {
  return at::isIntegralType(scalar_type(type), false);
}

// "[3, 0, 7]": the position of the flat index.
std::string position_of(std::int64_t index, at::IntArrayRef shape) {
  std::vector<std::int64_t> position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return to_string(position);
}

// Throws for the first element of `values` that is not finite; `original` is what the file held.
void check_finite(const at::Tensor& values, const at::Tensor& original, const std::string& path, const char* what) {
  for_each_part(values, [&](std::int64_t begin, const at::Tensor& part) {
    if (all_finite(part)) return;
    std::int64_t row = 0;  // one row at a time: isfinite() takes more memory than what it looks at
    while (all_finite(part[row])) ++row;
    const std::int64_t within = at::isfinite(part[row]).logical_not().flatten().nonzero()[0].item<std::int64_t>();
    const std::int64_t index = (begin + row) * part[0].numel() + within;
    const double value = original.flatten()[index].item<double>();
    const std::string position = position_of(index, values.sizes());
    if (std::isfinite(value)) input_error("{}: element {} is {}, too large for float32", path, position, value);
    input_error("{}: element {} is {}; {} must be finite", path, position, value, what);
  });
}

at::Tensor mapped_tensor(const MappedBytes& file, std::span<const std::byte> bytes, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(
      const_cast<std::byte*>(bytes.data()), shape, [file](void*) {}, at::TensorOptions().dtype(type));
}

// The array of a file as a tensor: mapped where it is large.
at::Tensor tensor_of_file(const std::string& path) {
  if (const std::optional<MappedNpy> array = map_npy(path))
    return mapped_tensor(array->file, array->bytes, array->shape, scalar_type(array->type));
  return to_tensor(read_npy(path));
}

// Rows that are looked at together.
std::int64_t rows_of_part(const at::Tensor& tensor) {
  constexpr std::int64_t kPart = std::int64_t{8} << 20;
  const std::int64_t row_bytes = static_cast<std::int64_t>(tensor.nbytes()) / std::max<std::int64_t>(1, tensor.size(0));
  return std::max<std::int64_t>(1, kPart / std::max<std::int64_t>(1, row_bytes));
}

// Each row is made of the first `per_row` words of the stream of its id.
template <class Make>
at::Tensor random_rows(at::IntArrayRef sample_shape, const at::Tensor& ids, std::uint64_t seed, std::string_view purpose,
                       std::int64_t per_row, Make make) {
  HOLDFAST_CHECK(ids.dim() == 1 && ids.scalar_type() == at::kLong);
  const at::Tensor own_ids = ids.to(at::kCPU).contiguous();
  std::vector<std::int64_t> shape{own_ids.size(0)};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  at::Tensor rows = at::empty(shape, at::kFloat);
  const StreamWords streams(seed, purpose);
  const std::int64_t* id = own_ids.const_data_ptr<std::int64_t>();
  float* value = rows.mutable_data_ptr<float>();
  const std::int64_t row_size = c10::multiply_integers(sample_shape);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(per_row));
  for (std::int64_t row = 0; row < own_ids.size(0); ++row, value += row_size) {
    streams.fill(static_cast<std::uint64_t>(id[row]), 0, words);
    make(words, value, static_cast<std::size_t>(row_size));
  }
  return rows;
}

at::Tensor words_on(at::Device device, const at::Tensor& ids, std::int64_t words, std::uint64_t seed, std::string_view purpose) {
  return stream_words(ids.to(device, /*non_blocking=*/true), words, seed, purpose);
}

// Rows of at least as many numbers as a sample has, in its shape.
at::Tensor shaped(const at::Tensor& rows, at::IntArrayRef sample_shape) {
  std::vector<std::int64_t> shape{rows.size(0)};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  return rows.slice(1, 0, c10::multiply_integers(sample_shape)).to(at::kFloat).reshape(shape);
}

}  // namespace

at::Tensor to_tensor(RawArray array) {
  const at::ScalarType type = scalar_type(array.type);
  HOLDFAST_CHECK(array.bytes.size() == static_cast<std::size_t>(array.count()) * size_of(array.type));
  if (array.bytes.empty()) return at::empty(array.shape, type);
  if (array.type == ElementType::kBool) {
    // NumPy takes every byte but 0 as true; in a C++ bool only 0 and 1 are defined.
    for (std::byte& element : array.bytes) element = element == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  auto owner = std::make_unique<RawArray>(std::move(array));
  void* data = owner->bytes.data();
  const std::vector<std::int64_t> shape = owner->shape;
  return at::from_blob(
      data, shape, [kept = owner.release()](void*) { delete kept; }, at::TensorOptions().dtype(type));
}

RawArray to_raw(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
  RawArray array;
  array.type = element_type(plain.scalar_type());
  array.shape = plain.sizes().vec();
  const auto* data = static_cast<const std::byte*>(plain.const_data_ptr());
  array.bytes.assign(data, data + plain.nbytes());
  return array;
}

at::Tensor read_inputs(const std::string& path, const ReadOptions& options) {
  const at::Tensor original = tensor_of_file(path);
  if (original.scalar_type() == at::kBool) input_error("{}: has bool elements; {} must be numbers", path, options.what);
  if (original.dim() == 0) input_error("{}: holds a single number; {} need an axis of samples", path, options.what);
  if (original.numel() == 0) input_error("{}: is empty, its shape is {}", path, to_string(original.sizes().vec()));
  const bool fits_float = original.is_floating_point() && original.scalar_type() != at::kDouble;
  const at::ScalarType type = options.keep_double && !fits_float ? at::kDouble : at::kFloat;
  const auto converted = [&](std::int64_t, const at::Tensor& part) { return part.to(type); };
  const at::Tensor inputs = original.scalar_type() == type ? original : large_change(original, type, converted);
  if (!options.allow_non_finite) check_finite(inputs, original, path, options.what);
  return inputs;
}

at::Tensor read_labels(const std::string& path, std::int64_t samples, std::int64_t classes) {
  RawArray array = read_npy(path);
  if (!is_integer(array.type)) input_error("{}: has {} elements; labels must be integers", path, to_string(array.type));
  if (array.shape.size() != 1) input_error("{}: has shape {}; labels must have one axis", path, to_string(array.shape));
  if (array.shape[0] != samples) input_error("{}: has {} labels for {} samples", path, array.shape[0], samples);
  const at::Tensor labels = to_tensor(std::move(array)).to(at::kLong);
  const std::int64_t limit = classes > 0 ? classes : std::numeric_limits<std::int64_t>::max();
  const std::int64_t* label = labels.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < samples; ++i) {
    if (label[i] >= 0 && label[i] < limit) continue;
    if (classes > 0) input_error("{}: label {} of sample {} is not in 0 to {}", path, label[i], i, classes - 1);
    input_error("{}: label {} of sample {} is negative", path, label[i], i);
  }
  return labels;
}

void write_tensor(const std::string& path, const at::Tensor& tensor) {
  // NumPy has no bfloat16; float32 holds every value of it.
  const at::Tensor plain =
      (tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor).detach().to(at::kCPU).contiguous();
  write_npy(path, element_type(plain.scalar_type()), plain.sizes().vec(),
            {static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()});
}

at::Tensor large_empty(at::IntArrayRef shape, at::ScalarType type) {
  const std::size_t bytes = static_cast<std::size_t>(c10::multiply_integers(shape)) * c10::elementSize(type);
  if (!is_large(bytes)) return at::empty(shape, type);
  const MappedBytes file = MappedBytes::scratch(bytes);
  return mapped_tensor(file, file.bytes(), shape, type);
}

void for_each_part(const at::Tensor& tensor, const std::function<void(std::int64_t begin, const at::Tensor& part)>& use) {
  const std::int64_t rows = rows_of_part(tensor);
  for (std::int64_t begin = 0; begin < tensor.size(0); begin += rows) {
    const at::Tensor part = tensor.slice(0, begin, std::min(begin + rows, tensor.size(0)));
    use(begin, part);
    count_looked_at(part.nbytes());
  }
}

at::Tensor large_change(const at::Tensor& tensor, at::ScalarType type,
                        const std::function<at::Tensor(std::int64_t begin, const at::Tensor& part)>& change) {
  at::Tensor changed = large_empty(tensor.sizes(), type);
  for_each_part(tensor, [&](std::int64_t begin, const at::Tensor& part) {
    changed.slice(0, begin, begin + part.size(0)).copy_(change(begin, part));
    count_looked_at(part.nbytes());
  });
  return changed;
}

at::Tensor large_select(const at::Tensor& tensor, const at::Tensor& rows) {
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape[0] = rows.numel();
  const std::size_t bytes = static_cast<std::size_t>(c10::multiply_integers(shape)) * tensor.element_size();
  if (!is_large(bytes)) return tensor.index_select(0, rows.to(tensor.device()));
  at::Tensor selected = large_empty(shape, tensor.scalar_type());
  const std::int64_t at_once = rows_of_part(tensor);
  for (std::int64_t begin = 0; begin < shape[0]; begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, shape[0]);
    at::Tensor part = selected.slice(0, begin, end);
    part.copy_(tensor.index_select(0, rows.slice(0, begin, end).to(tensor.device())));
    count_looked_at(2 * part.nbytes());
  }
  return selected;
}

at::Tensor random_normal(at::IntArrayRef sample_shape, const at::Tensor& ids, std::uint64_t seed, std::string_view purpose,
                         at::Device device) {
  const std::int64_t even = (c10::multiply_integers(sample_shape) + 1) / 2 * 2;  // they come in pairs
  if (!device.is_cpu()) return shaped(normal_from(words_on(device, ids, even, seed, purpose)), sample_shape);
  std::vector<float> numbers(static_cast<std::size_t>(even));
  return random_rows(sample_shape, ids, seed, purpose, even,
                     [&](std::span<const std::uint32_t> words, float* row, std::size_t size) {
                       normal_of(words, numbers);
                       std::copy_n(numbers.begin(), size, row);
                     });
}

at::Tensor random_uniform(at::IntArrayRef sample_shape, const at::Tensor& ids, std::uint64_t seed, std::string_view purpose,
                          at::Device device) {
  if (!device.is_cpu())
    return shaped(uniform_from(words_on(device, ids, c10::multiply_integers(sample_shape), seed, purpose)), sample_shape);
  return random_rows(
      sample_shape, ids, seed, purpose, c10::multiply_integers(sample_shape),
      [](std::span<const std::uint32_t> words, float* row, std::size_t size) { uniform_of(words.first(size), row); });
}

bool all_finite(const at::Tensor& tensor) {
  if (tensor.dim() == 0 || tensor.numel() == 0) return at::isfinite(tensor).all().item<bool>();
  bool finite = true;
  for_each_part(tensor, [&](std::int64_t, const at::Tensor& part) {
    // One pass, and the usual answer: a finite sum has finite terms only. Else the extremes say it, which take no memory.
    if (!finite || std::isfinite(part.sum().item<double>())) return;
    const auto [low, high] = at::aminmax(part);
    finite = std::isfinite(low.item<double>()) && std::isfinite(high.item<double>());
  });
  return finite;
}

}  // namespace holdfast
