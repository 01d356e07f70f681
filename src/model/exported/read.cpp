#include "read.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "holdfast/core/error.h"
#include "holdfast/core/json.h"
#include "holdfast/core/json_error.h"
#include "holdfast/core/zip.h"

namespace holdfast::model::exported {
namespace {

using namespace program;

constexpr std::int64_t kFormat = 8;                          // the major version that is read
constexpr std::size_t kLongestText = std::size_t{64} << 20;  // of a JSON record

// Elements as the format numbers them.
const std::map<std::int64_t, ElementType> kElementTypes{
    {1, ElementType::kUint8},  {2, ElementType::kInt8},      {3, ElementType::kInt16},   {4, ElementType::kInt32},
    {5, ElementType::kInt64},  {6, ElementType::kFloat16},   {7, ElementType::kFloat32}, {8, ElementType::kFloat64},
    {12, ElementType::kBool},  {13, ElementType::kBfloat16}, {28, ElementType::kUint16}, {34, ElementType::kUint32},
    {35, ElementType::kUint64}};
constexpr std::int64_t kStrided = 7;

// Arithmetic on sizes, by Python's functions.
const std::unordered_map<std::string, std::string> kSizeOperations{{"_operator.add", "aten::add"},
                                                                   {"_operator.sub", "aten::sub"},
                                                                   {"_operator.mul", "aten::mul"},
                                                                   {"_operator.floordiv", "aten::floordiv"},
                                                                   {"_operator.mod", "aten::remainder"},
                                                                   {"_operator.truediv", "aten::div"},
                                                                   {"_operator.pow", "aten::pow"},
                                                                   {"_operator.neg", "aten::neg"},
                                                                   {"_operator.eq", "aten::eq"},
                                                                   {"_operator.ne", "aten::ne"},
                                                                   {"_operator.lt", "aten::lt"},
                                                                   {"_operator.le", "aten::le"},
                                                                   {"_operator.gt", "aten::gt"},
                                                                   {"_operator.ge", "aten::ge"},
                                                                   {"_operator.and_", "aten::__and__"},
                                                                   {"_operator.or_", "aten::__or__"},
                                                                   {"_operator.lshift", "aten::__lshift__"},
                                                                   {"_operator.rshift", "aten::__rshift__"},
                                                                   {"math.trunc", "aten::Int"},
                                                                   {"math.floor", "aten::floor"},
                                                                   {"math.ceil", "aten::ceil"},
                                                                   {"torch.sym_int", "aten::Int"},
                                                                   {"torch.sym_float", "aten::Float"},
                                                                   {"torch.sym_max", "prim::max"},
                                                                   {"torch.sym_min", "prim::min"},
                                                                   {"torch.sym_not", "aten::__not__"},
                                                                   {"torch.sym_sqrt", "aten::sqrt"}};

// Checks of sizes that exporting left in the graph. Torch checks sizes itself where it computes.
bool is_assertion(const std::string& operation) {
  return operation.starts_with("_assert_") || operation.starts_with("sym_constrain_range");
}

struct Payload {
  ElementType type;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset;
  std::string record;
};

class Reader {
 public:
  Reader(const Bytes& bytes, const std::string& path) : bytes_(bytes), path_(path) {
    for (ZipMember& member : check_zip(bytes, path)) {
      const std::size_t folder = member.name.find('/');
      if (folder == std::string::npos) refuse("record {} lies in no folder", member.name);
      std::string name = member.name.substr(folder + 1);
      members_.emplace(std::move(name), std::move(member));
    }
  }

  Program read() {
    check_format();
    const std::string record = only_model();
    try {
      return read_model(record);
    } catch (const Json::exception& error) {
      refuse("{} is not the graph of a program: {}", record, json_reason(error));
    }
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(fmt::format_string<Parts...> format, Parts&&... parts) const {
    input_error("{} is not a torch.export program that can be read: {}", path_,
                fmt::format(format, std::forward<Parts>(parts)...));
  }

  // The only key of a tagged value: {"as_int": 3}.
  static std::string kind_of(const Json& tagged) {
    return tagged.is_object() && tagged.size() == 1 ? tagged.begin().key() : std::string("as_untagged");
  }

  std::string text(const std::string& name) const {
    const auto found = members_.find(name);
    if (found == members_.end()) refuse("it has no record {}", name);
    if (found->second.size > kLongestText) refuse("record {} has more than {} bytes", name, kLongestText);
    return std::string(as_text(extract(bytes_, found->second, path_)));
  }

  void check_format() const {
    if (const std::string format = text("archive_format"); format != "pt2") refuse("its archive_format is '{}'", format);
    if (members_.contains("byteorder") && text("byteorder") != "little") refuse("its numbers are not little-endian");
    for (const auto& [name, member] : members_) {
      if (name.starts_with("data/aotinductor/"))
        refuse("it holds compiled code ({}); save the program itself, torch.export.save", name);
    }
  }

  std::string only_model() const {
    std::vector<std::string> models;
    for (const auto& [name, member] : members_) {
      if (name.starts_with("models/") && name.ends_with(".json")) models.push_back(name);
    }
    if (models.size() != 1) refuse("it holds {} models, not one", models.size());
    return models.front();
  }

  Program read_model(const std::string& record) {
    const Json model = parse_json(text(record), path_ + ": " + record);
    const std::int64_t version = model.at("schema_version").at("major").get<std::int64_t>();
    if (version != kFormat) {
      const std::string torch = model.value("torch_version", "");
      input_error("{} has version {} of the format of torch.export{}; version {} is read: export it again with torch 2.13", path_,
                  version, torch.empty() ? "" : fmt::format(" (torch {})", torch), kFormat);
    }
    const Json& module = model.at("graph_module");
    const Json& graph = module.at("graph");
    Program program{.path = path_, .kind = "a torch.export program"};
    const std::string name = record.substr(7, record.size() - 12);
    read_inputs(program, module.at("signature").at("input_specs"), graph, name);
    read_calls(program, graph.at("nodes"));
    read_outputs(program, module);
    return program;
  }

  std::map<std::string, Payload> payloads(const std::string& folder, const std::string& config) const {
    std::map<std::string, Payload> result;
    if (!members_.contains(folder + config)) return result;
    const Json json = parse_json(text(folder + config), path_ + ": " + folder + config);
    for (const auto& [name, entry] : json.at("config").items()) {
      if (entry.at("use_pickle").get<bool>()) refuse("{} is pickled, and a pickle is a program; save plain tensors", name);
      const Json& meta = entry.at("tensor_meta");
      if (meta.is_null()) refuse("{} is no tensor", name);
      const auto type = kElementTypes.find(meta.at("dtype").get<std::int64_t>());
      if (type == kElementTypes.end() || meta.at("layout").get<std::int64_t>() != kStrided)
        refuse("{} is no dense array of real numbers", name);
      result.emplace(name, Payload{type->second, sizes_of(meta.at("sizes")), sizes_of(meta.at("strides")),
                                   meta.at("storage_offset").at("as_int").get<std::int64_t>(),
                                   folder + entry.at("path_name").get<std::string>()});
    }
    return result;
  }

  static std::vector<std::int64_t> sizes_of(const Json& list) {
    std::vector<std::int64_t> sizes;
    for (const Json& size : list) sizes.push_back(size.at("as_int").get<std::int64_t>());
    return sizes;
  }

  // Row by row, whatever order the elements are stored in. Every element must lie inside the record.
  RawArray array_of(const std::string& name, const Payload& payload) const {
    const auto found = members_.find(payload.record);
    if (found == members_.end()) refuse("{} should be in record {}, which is missing", name, payload.record);
    Bytes unpacked;
    std::span<const std::byte> stored;
    if (found->second.is_stored()) {
      stored = packed_bytes(bytes_, found->second, path_);
    } else {
      unpacked = extract(bytes_, found->second, path_);
      stored = unpacked;
    }
    const std::size_t width = size_of(payload.type), count = stored.size() / width, rank = payload.sizes.size();
    if (payload.strides.size() != rank) refuse("{} has {} sizes and {} strides", name, rank, payload.strides.size());
    RawArray array{payload.type, payload.sizes, {}};
    // A stride of 0 repeats elements: what it grows to is held to what a file of this size may hold.
    array.bytes.resize(
        checked_bytes(payload.sizes, payload.type, std::max<std::size_t>(bytes_.size(), 1) * 64, path_ + ": " + name));
    if (array.bytes.empty()) return array;
    std::int64_t last = payload.offset;
    bool inside = last >= 0;
    for (std::size_t i = 0; i < rank && inside; ++i) {
      std::int64_t reach = 0;
      inside = payload.strides[i] >= 0 && !__builtin_mul_overflow(payload.strides[i], payload.sizes[i] - 1, &reach) &&
               !__builtin_add_overflow(last, reach, &last);
    }
    if (!inside || static_cast<std::uint64_t>(last) >= count) refuse("{} reaches past its record {}", name, payload.record);

    std::vector<std::int64_t> index(rank, 0);
    for (std::size_t to = 0; to < array.bytes.size(); to += width) {
      std::int64_t from = payload.offset;
      for (std::size_t i = 0; i < rank; ++i) from += index[i] * payload.strides[i];
      std::copy_n(stored.data() + static_cast<std::size_t>(from) * width, width, array.bytes.data() + to);
      for (std::size_t i = rank; i-- > 0 && ++index[i] == payload.sizes[i];) index[i] = 0;
    }
    return array;
  }

  void read_inputs(Program& program, const Json& specs, const Json& graph, const std::string& model) const {
    const auto weights = payloads("data/weights/", model + "_weights_config.json");
    const auto constants = payloads("data/constants/", model + "_constants_config.json");
    const auto add = [&](const Json& spec, const char* key, bool is_parameter) {
      const std::string own = spec.at(key).get<std::string>();
      const auto weight = weights.find(own), constant = constants.find(own);
      if (weight == weights.end() && constant == constants.end()) refuse("the archive does not hold {}", own);
      const Payload& payload = weight != weights.end() ? weight->second : constant->second;
      program.constants.push_back({spec.at("arg").at("name").get<std::string>(), own, is_parameter, array_of(own, payload)});
    };
    for (const Json& spec : specs) {
      const std::string kind = kind_of(spec);
      const Json& of = spec.at(kind);
      if (kind == "parameter") {
        add(of, "parameter_name", true);
      } else if (kind == "buffer") {
        add(of, "buffer_name", false);
      } else if (kind == "tensor_constant") {
        add(of, "tensor_constant_name", false);
      } else if (kind == "user_input") {
        if (of.at("arg").contains("as_tensor")) program.inputs.push_back(input_of(of.at("arg"), graph));
      } else if (kind != "constant_input") {
        refuse("it takes a {}, which is no array", kind);
      }
    }
  }

  Input input_of(const Json& argument, const Json& graph) const {
    Input input{.name = argument.at("as_tensor").at("name").get<std::string>()};
    const Json& meta = graph.at("tensor_values").at(input.name);
    const auto type = kElementTypes.find(meta.at("dtype").get<std::int64_t>());
    if (type == kElementTypes.end()) refuse("its input {} is no array of real numbers", input.name);
    input.type = type->second;
    for (const Json& size : meta.at("sizes"))
      input.sizes.push_back(size.contains("as_int") ? std::optional(size.at("as_int").get<std::int64_t>()) : std::nullopt);
    return input;
  }

  void read_calls(Program& program, const Json& nodes) const {
    std::size_t number = 0;
    for (const Json& node : nodes) {
      const std::string target = node.at("target").get<std::string>();
      Call call{.where = fmt::format("node {} ({})", number++, target)};
      const bool on_sizes = kSizeOperations.contains(target);
      if (on_sizes) {
        call.operation = kSizeOperations.at(target);
      } else {
        if (!target.starts_with("torch.ops.aten."))
          refuse("{}: operators of torch.ops.aten are read, and arithmetic on sizes", call.where);
        const std::string name = target.substr(15, target.find('.', 15) - 15);
        if (is_assertion(name)) continue;
        call.operation = "aten::" + name;
        call.overload = target.size() > 15 + name.size() ? target.substr(16 + name.size()) : "default";
        if (call.overload == "default") call.overload = "";
      }
      for (const Json& argument : node.at("inputs")) {
        const std::string name = on_sizes ? "" : argument.at("name").get<std::string>();
        call.arguments.push_back({name, argument_of(argument.at("arg"), call.where)});
      }
      for (const Json& output : node.at("outputs")) call.results.push_back(result_of(output, call.where));
      program.calls.push_back(std::move(call));
    }
  }

  static double number_of(const Json& json) {
    if (!json.is_string()) return json.get<double>();
    const std::string word = json.get<std::string>();
    if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
    return word == "-Infinity" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }

  template <class Read>
  static Argument list_of(const Json& json, const Read& read) {
    std::vector<Argument> items;
    for (const Json& item : json) items.push_back(read(item));
    return {std::move(items)};
  }

  Argument argument_of(const Json& json, const std::string& where) const {
    const std::string kind = kind_of(json);
    const Json& of = json.at(kind);
    const auto reference = [](const Json& item) { return Argument{Reference{item.at("name").get<std::string>()}}; };
    const auto integer = [](const Json& item) { return Argument{item.get<std::int64_t>()}; };
    const auto real = [](const Json& item) { return Argument{number_of(item)}; };
    const auto truth = [](const Json& item) { return Argument{item.get<bool>()}; };
    const auto word = [](const Json& item) { return Argument{item.get<std::string>()}; };
    // A number, or the name of one that is computed.
    const auto symbolic = [&](const auto& plain) {
      return [&plain](const Json& item) {
        if (item.contains("as_name")) return Argument{Reference{item.at("as_name").get<std::string>()}};
        return plain(item.at(kind_of(item)));
      };
    };
    const auto optional_tensor = [&](const Json& item) {
      return item.contains("as_none") ? Argument{} : reference(item.at("as_tensor"));
    };

    if (kind == "as_none") return {};
    if (kind == "as_tensor") return reference(of);
    if (kind == "as_tensors") return list_of(of, reference);
    if (kind == "as_optional_tensor") return optional_tensor(of);
    if (kind == "as_optional_tensors") return list_of(of, optional_tensor);
    if (kind == "as_int") return integer(of);
    if (kind == "as_ints") return list_of(of, integer);
    if (kind == "as_float") return real(of);
    if (kind == "as_floats") return list_of(of, real);
    if (kind == "as_bool") return truth(of);
    if (kind == "as_bools") return list_of(of, truth);
    if (kind == "as_string") return word(of);
    if (kind == "as_sym_int") return symbolic(integer)(of);
    if (kind == "as_sym_ints") return list_of(of, symbolic(integer));
    if (kind == "as_sym_float") return symbolic(real)(of);
    if (kind == "as_sym_floats") return list_of(of, symbolic(real));
    if (kind == "as_sym_bool") return symbolic(truth)(of);
    if (kind == "as_device") return {OwnDevice{}};
    if (kind == "as_layout" && of.get<std::int64_t>() == kStrided) return {std::int64_t{0}};
    // Contiguous, channels last, channels last in 3 dimensions, as it is: torch numbers them in another order.
    if (kind == "as_memory_format") {
      constexpr std::int64_t kTorchs[] = {0, 0, 2, 3, 1};
      const std::int64_t format = of.get<std::int64_t>();
      if (format < 1 || format > 4) refuse("{}: memory format {} is not known", where, format);
      return {kTorchs[format]};
    }
    if (kind == "as_scalar_type") {
      const auto type = kElementTypes.find(of.get<std::int64_t>());
      if (type == kElementTypes.end()) refuse("{}: elements of type {} are not known", where, of.get<std::int64_t>());
      return {type->second};
    }
    refuse("{}: an argument of the kind {} is not read", where, kind.substr(kind.find('_') + 1));
  }

  Result result_of(const Json& json, const std::string& where) const {
    const std::string kind = kind_of(json);
    const Json& of = json.at(kind);
    if (kind == "as_none") return {{""}};
    if (kind == "as_tensor") return {{of.at("name").get<std::string>()}};
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return {{of.at("as_name").get<std::string>()}};
    if (kind == "as_optional_tensor") return {{of.contains("as_none") ? "" : of.at("as_tensor").at("name").get<std::string>()}};
    if (kind != "as_tensors") refuse("{}: a result of the kind {} is not read", where, kind.substr(kind.find('_') + 1));
    Result result{.is_list = true};
    for (const Json& item : of) result.names.push_back(item.at("name").get<std::string>());
    return result;
  }

  // A dictionary's keys are in the description of the result's structure.
  void read_outputs(Program& program, const Json& module) const {
    for (const Json& spec : module.at("signature").at("output_specs")) {
      if (!spec.contains("user_output")) continue;  // a buffer that was written to: each call starts afresh
      const Json& argument = spec.at("user_output").at("arg");
      if (argument.contains("as_tensor")) program.outputs.push_back({"", argument.at("as_tensor").at("name").get<std::string>()});
    }
    if (program.outputs.empty()) refuse("it gives no tensor");
    for (const Json& call : module.at("module_call_graph")) {
      if (!call.at("fqn").get<std::string>().empty() || call.at("signature").is_null()) continue;
      const Json structure = Json::parse(call.at("signature").at("out_spec").get<std::string>()).at(1);
      if (!structure.at("context").is_string()) return;
      const Json keys = Json::parse(structure.at("context").get<std::string>(), nullptr, /*allow_exceptions=*/false);
      if (!keys.is_array() || keys.size() != program.outputs.size()) return;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i].is_string()) program.outputs[i].key = keys[i].get<std::string>();
      }
      return;
    }
  }

  const Bytes& bytes_;
  const std::string& path_;
  std::map<std::string, ZipMember> members_;
};

}  // namespace

bool is_record_of_program(const std::string& name) {
  return name.ends_with("/archive_format") || (name.find("/models/") != std::string::npos && name.ends_with(".json"));
}

Program read_program(const Bytes& bytes, const std::string& path) {
  return Reader(bytes, path).read();
}

}  // namespace holdfast::model::exported
