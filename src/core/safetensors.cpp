// A file is: 8 bytes, the header's length, little-endian; the header, JSON; the arrays' bytes, without gaps.
//     {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
// https://huggingface.co/docs/safetensors. The header is read as a stream of events, not as a tree: names keep their order,
// one that comes twice is seen, and neither depth nor count of names can cost more than reading the header once.
#include "holdfast/core/safetensors.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/core/memory.h"

namespace holdfast {
namespace {

constexpr std::size_t kLongestHeader = 100'000'000;  // the limit of the reference implementation
constexpr const char* kMetadataName = "__metadata__";
constexpr const char* kDigest = "digest";

constexpr std::array<std::pair<const char*, ElementType>, 13> kTypes{{
    {"BOOL", ElementType::kBool},
    {"U8", ElementType::kUint8},
    {"I8", ElementType::kInt8},
    {"U16", ElementType::kUint16},
    {"I16", ElementType::kInt16},
    {"U32", ElementType::kUint32},
    {"I32", ElementType::kInt32},
    {"U64", ElementType::kUint64},
    {"I64", ElementType::kInt64},
    {"F16", ElementType::kFloat16},
    {"BF16", ElementType::kBfloat16},
    {"F32", ElementType::kFloat32},
    {"F64", ElementType::kFloat64},
}};

const char* safetensors_code(ElementType type) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& entry) { return entry.second == type; });
  HOLDFAST_CHECK(found != kTypes.end());
  return found->first;
}

struct Entry {
  std::string name;
  std::optional<ElementType> type;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::int64_t>> offsets;
};

// Takes the events of nlohmann's parser and builds entries and metadata; refuses everything else.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}

  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;

  bool start_object(std::size_t) {
    if (place_ == Place::kStart) {
      place_ = Place::kNames;
    } else if (place_ == Place::kNames) {
      seen_inside_.clear();
      if (key_ == kMetadataName) {
        place_ = Place::kMetadata;
      } else {
        place_ = Place::kEntry;
        entries.push_back({.name = key_});
      }
    } else {
      refuse("an object");
    }
    return true;
  }
  bool end_object() {
    if (place_ == Place::kEntry) check_complete(entries.back());
    place_ = place_ == Place::kNames ? Place::kEnd : Place::kNames;
    return true;
  }
  bool key(std::string& text) {
    auto& seen = place_ == Place::kNames ? seen_names_ : seen_inside_;
    if (!seen.insert(text).second) damaged(fmt::format("the name '{}' is there twice", shortened(text)));
    if (place_ == Place::kEntry && text != "dtype" && text != "shape" && text != "data_offsets") {
      damaged(fmt::format("array '{}' has the unknown field '{}'", shortened(entries.back().name), shortened(text)));
    }
    key_ = text;
    return true;
  }
  bool start_array(std::size_t) {
    if (place_ != Place::kEntry || key_ == "dtype") refuse("a list");
    auto& list = key_ == "shape" ? entries.back().shape : entries.back().offsets;
    list.emplace();
    list_ = &*list;
    place_ = Place::kList;
    return true;
  }
  bool end_array() {
    place_ = Place::kEntry;
    return true;
  }
  bool string(std::string& text) {
    if (place_ == Place::kMetadata) {
      metadata.emplace_back(key_, text);
    } else if (place_ == Place::kEntry && key_ == "dtype") {
      const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& entry) { return text == entry.first; });
      if (found == kTypes.end()) {
        input_error("{}: array '{}' has dtype {}, which is not supported", where_, shortened(entries.back().name),
                    shortened(text));
      }
      entries.back().type = found->second;
    } else {
      refuse("a text");
    }
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    if (place_ != Place::kList) refuse("a number");
    if (value > static_cast<std::uint64_t>(INT64_MAX)) refuse("a number above 2^63");
    list_->push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(std::int64_t) { refuse("a negative number"); }
  bool number_float(double, const std::string&) { refuse("a number that is not whole"); }
  bool null() { refuse("null"); }
  bool boolean(bool) { refuse("true or false"); }
  bool binary(Json::binary_t&) { refuse("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    damaged(fmt::format("it is not JSON at byte {}", position));
  }

  [[noreturn]] void damaged(const std::string& why) const {
    input_error("{}: the safetensors header is damaged: {}", where_, why);
  }
  static std::string shortened(const std::string& text) { return text.size() <= 80 ? text : text.substr(0, 77) + "..."; }

 private:
  enum class Place { kStart, kNames, kMetadata, kEntry, kList, kEnd };

  [[noreturn]] void refuse(const char* what) const {
    if (place_ == Place::kStart) damaged(fmt::format("it is {}, not a table of names", what));
    damaged(fmt::format("'{}' has {} where it cannot be", shortened(key_), what));
  }
  void check_complete(const Entry& entry) const {
    if (!entry.type || !entry.shape || !entry.offsets) {
      damaged(fmt::format("array '{}' lacks one of dtype, shape, data_offsets", shortened(entry.name)));
    }
    if (entry.offsets->size() != 2)
      damaged(fmt::format("array '{}' has {} data_offsets, not 2", shortened(entry.name), entry.offsets->size()));
  }

  const std::string& where_;
  Place place_ = Place::kStart;
  std::string key_;
  std::vector<std::int64_t>* list_ = nullptr;
  std::unordered_set<std::string> seen_names_, seen_inside_;
};

// Every byte of the data belongs to exactly one array, and each array has as many as its shape needs.
void check_offsets(const std::vector<Entry>& entries, std::size_t available, const HeaderReader& reader,
                   const std::string& where) {
  std::vector<const Entry*> by_place;
  for (const Entry& entry : entries) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(), [](const Entry* a, const Entry* b) { return *a->offsets < *b->offsets; });
  std::int64_t covered = 0;
  for (const Entry* entry : by_place) {
    const std::string name = HeaderReader::shortened(entry->name);
    const std::int64_t begin = entry->offsets->front(), end = entry->offsets->back();
    if (end < begin || static_cast<std::uint64_t>(end) > available) {
      reader.damaged(fmt::format("array '{}' lies at bytes {} to {} of {}", name, begin, end, available));
    }
    if (begin < covered)
      reader.damaged(fmt::format("array '{}' starts at byte {}, inside another that ends at {}", name, begin, covered));
    if (begin > covered) reader.damaged(fmt::format("bytes {} to {} before array '{}' belong to no array", covered, begin, name));
    const std::size_t size = checked_bytes(*entry->shape, *entry->type, available, fmt::format("{}: array '{}'", where, name));
    if (size != static_cast<std::size_t>(end - begin)) {
      reader.damaged(fmt::format("array '{}' of {} {} needs {} bytes, its data_offsets give {}", name, to_string(*entry->type),
                                 to_string(*entry->shape), size, end - begin));
    }
    covered = end;
  }
  if (static_cast<std::size_t>(covered) != available) {
    input_error("{}: has {} bytes behind the last array's end", where, available - static_cast<std::size_t>(covered));
  }
}

// Where each array's bytes begin: larger elements first, so that every array is aligned; otherwise in order.
std::vector<std::size_t> order_of_data(const TensorFile& file) {
  std::vector<std::size_t> order(file.arrays.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(file.arrays[a].second.type) > size_of(file.arrays[b].second.type);
  });
  return order;
}

// Length and JSON, padded so that the data starts at a multiple of 8.
std::string format_header(const TensorFile& file) {
  std::vector<std::size_t> begins(file.arrays.size());
  std::size_t begin = 0;
  for (const std::size_t i : order_of_data(file)) {
    begins[i] = begin;
    begin += file.arrays[i].second.bytes.size();
  }
  const auto quoted = [](const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); };
  std::vector<std::string> parts;
  if (!file.metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, text] : file.metadata) pairs.push_back(quoted(key) + ":" + quoted(text));
    parts.push_back(fmt::format("\"{}\":{{{}}}", kMetadataName, fmt::join(pairs, ",")));
  }
  std::unordered_set<std::string> names{kMetadataName};
  for (std::size_t i = 0; i < file.arrays.size(); ++i) {
    const auto& [name, array] = file.arrays[i];
    HOLDFAST_CHECK(names.insert(name).second);
    HOLDFAST_CHECK(array.bytes.size() == static_cast<std::size_t>(array.count()) * size_of(array.type));
    parts.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(name),
                                safetensors_code(array.type), fmt::join(array.shape, ","), begins[i],
                                begins[i] + array.bytes.size()));
  }
  std::string json = fmt::format("{{{}}}", fmt::join(parts, ","));
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string header;
  for (int i = 0; i < 8; ++i) header += static_cast<char>(json.size() >> (8 * i) & 255);
  return header + json;
}

// Of all that the file holds, in its order. Lengths come first, so that no two files give the same bytes.
std::string digest_of(const TensorFile& file) {
  std::string text;
  const auto add = [&](const std::string& part) { text += fmt::format("{}:{}", part.size(), part); };
  for (const auto& [key, value] : file.metadata) {
    if (key == kDigest) continue;
    add(key);
    add(value);
  }
  for (const auto& [name, array] : file.arrays) {
    add(name);
    add(to_string(array.type));
    add(to_string(array.shape));
    add(sha256_hex(array.bytes));
  }
  return sha256_hex(as_bytes(text));
}

}  // namespace

const RawArray* TensorFile::find(const std::string& name) const {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& entry) { return entry.first == name; });
  return found == arrays.end() ? nullptr : &found->second;
}

const std::string* TensorFile::find_metadata(const std::string& key) const {
  const auto found = std::find_if(metadata.begin(), metadata.end(), [&](const auto& entry) { return entry.first == key; });
  return found == metadata.end() ? nullptr : &found->second;
}

TensorFile parse_safetensors(std::span<const std::byte> file, const std::string& where) {
  if (file.size() < 8) input_error("{}: is truncated: a safetensors file has at least 8 bytes, this one {}", where, file.size());
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > file.size() - 8) {
    input_error("{}: is truncated or no safetensors file: the header claims {} bytes, but {} follow", where, length,
                file.size() - 8);
  }
  if (length > kLongestHeader)
    input_error("{}: the safetensors header has {} bytes; at most {} are allowed", where, length, kLongestHeader);

  HeaderReader reader(where);
  const std::string_view json = as_text(file.subspan(8, length));
  if (!json.starts_with('{')) reader.damaged("it does not start with {");
  Json::sax_parse(json.begin(), json.end(), &reader);
  const std::span<const std::byte> data = file.subspan(8 + length);
  check_offsets(reader.entries, data.size(), reader, where);
  check_memory(data.size(), where);

  TensorFile result;
  result.metadata = std::move(reader.metadata);
  for (Entry& entry : reader.entries) {
    const auto begin = data.begin() + entry.offsets->front(), end = data.begin() + entry.offsets->back();
    result.arrays.emplace_back(std::move(entry.name), RawArray{*entry.type, std::move(*entry.shape), {begin, end}});
  }
  return result;
}

TensorFile read_safetensors(const std::string& path) {
  // Mapped: the header is checked before memory is taken.
  return parse_safetensors(MappedBytes::of_file(path).bytes(), path);
}

std::vector<std::byte> format_safetensors(const TensorFile& file) {
  const std::string header = format_header(file);
  std::vector<std::byte> result(as_bytes(header).begin(), as_bytes(header).end());
  for (const std::size_t i : order_of_data(file)) {
    const std::vector<std::byte>& bytes = file.arrays[i].second.bytes;
    result.insert(result.end(), bytes.begin(), bytes.end());
  }
  return result;
}

void write_safetensors(const std::string& path, const TensorFile& file) {
  const std::string header = format_header(file);
  std::vector<std::span<const std::byte>> parts{as_bytes(header)};
  for (const std::size_t i : order_of_data(file)) parts.emplace_back(file.arrays[i].second.bytes);
  write_atomic(path, parts);
}

void seal(TensorFile& file) {
  file.metadata.emplace_back(kDigest, digest_of(file));
}

bool is_sealed(const TensorFile& file) {
  const std::string* digest = file.find_metadata(kDigest);
  return digest != nullptr && *digest == digest_of(file);
}

}  // namespace holdfast
