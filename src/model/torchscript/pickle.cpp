// The instructions that torch's writer uses (protocol 2, pickletools names them) on a stack of descriptions instead of values.
#include "pickle.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/raw_array.h"

namespace holdfast::model::torchscript {
namespace {

constexpr std::size_t kDeepest = 200;                    // values within values: torch takes them apart by recursion
constexpr std::size_t kLongestType = 4096;               // of "Dict[str, List[Tensor]]"
constexpr std::size_t kLongest = std::size_t{64} << 20;  // a value takes a byte of the pickle and many of memory

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 13> kStorages{{{"torch ByteStorage", 1},
                                                                                {"torch CharStorage", 1},
                                                                                {"torch ShortStorage", 2},
                                                                                {"torch IntStorage", 4},
                                                                                {"torch LongStorage", 8},
                                                                                {"torch HalfStorage", 2},
                                                                                {"torch FloatStorage", 4},
                                                                                {"torch DoubleStorage", 8},
                                                                                {"torch ComplexHalfStorage", 4},
                                                                                {"torch ComplexFloatStorage", 8},
                                                                                {"torch ComplexDoubleStorage", 16},
                                                                                {"torch BoolStorage", 1},
                                                                                {"torch BFloat16Storage", 2}}};

// Functions that make a value of the tuple behind them.
constexpr std::array<std::string_view, 8> kBuilders{"torch.jit._pickle build_intlist",
                                                    "torch.jit._pickle build_tensorlist",
                                                    "torch.jit._pickle build_doublelist",
                                                    "torch.jit._pickle build_boollist",
                                                    "torch.jit._pickle restore_type_tag",
                                                    "collections OrderedDict",
                                                    "torch device",
                                                    "builtins complex"};
constexpr std::string_view kRebuild = "torch._utils _rebuild_tensor_v2";

enum class Kind { kNone, kBool, kInteger, kReal, kText, kTuple, kList, kDict, kGlobal, kClass, kStorage, kTensor, kObject };

struct Value {
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;              // a number; of a storage, its elements
  std::string text;                      // a text; the name of a global
  std::vector<const Value*> items = {};  // of a tuple
  std::size_t depth = 1;
  bool is_shared = false;  // fetched from the table: from now on nothing is added to it, so that no value contains itself
};

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> pickle, const std::string& where, PickleKind kind, const RecordSize& record_size)
      : pickle_(pickle), where_(where), pickle_kind_(kind), record_size_(record_size) {}

  void read() {
    if (pickle_.size() > kLongest) refuse(fmt::format("it has {} bytes; at most {} are allowed", pickle_.size(), kLongest));
    if (byte() != 0x80 || byte() != 2) refuse("it does not start as torch's pickles do");
    while (step(static_cast<char>(byte()))) {
    }
    if (at_ != pickle_.size()) refuse(fmt::format("{} bytes follow its end", pickle_.size() - at_));
    if (stack_.size() != 1 || !marks_.empty()) refuse("it leaves more than one value");
  }

 private:
  template <class Text>
  [[noreturn]] void refuse(const Text& why) const {
    input_error("{} is damaged or no pickle of torch: {} (byte {})", where_, why, at_);
  }

  std::uint8_t byte() {
    if (at_ == pickle_.size()) refuse("it is cut off");
    return std::to_integer<std::uint8_t>(pickle_[at_++]);
  }
  std::uint64_t little(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(byte()) << (8 * i);
    return value;
  }
  std::string line() {
    std::string text;
    for (char letter = static_cast<char>(byte()); letter != '\n'; letter = static_cast<char>(byte())) {
      const bool allowed = letter == '_' || letter == '.' || (letter >= '0' && letter <= '9') ||
                           (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
      if (!allowed) refuse("a name has a letter that no name has");
      text += letter;
    }
    return text;
  }

  Value& push(Value value) {
    if (value.depth > kDeepest) refuse(fmt::format("values are nested more than {} deep", kDeepest));
    values_.push_back(std::make_unique<Value>(std::move(value)));
    stack_.push_back(values_.back().get());
    return *values_.back();
  }
  Value* pop() {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) refuse("a value is missing");
    Value* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<const Value*> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const Value*> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void push_tuple(std::vector<const Value*> items) {
    Value tuple{.kind = Kind::kTuple, .items = std::move(items)};
    for (const Value* item : tuple.items) tuple.depth = std::max(tuple.depth, item->depth + 1);
    push(std::move(tuple));
  }
  void push_last(std::size_t count) {
    std::vector<const Value*> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push_tuple(std::move(items));
  }

  // Adds to the list or the dictionary that lies on top.
  void add_to(Kind kind, const std::vector<const Value*>& items) {
    if (stack_.empty() || stack_.back()->kind != kind || stack_.back()->is_shared) refuse("values are added to what takes none");
    if (kind == Kind::kDict && items.size() % 2 != 0) refuse("a key has no value");
    Value& container = *stack_.back();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (kind == Kind::kDict && i % 2 == 0 && !is_key(*items[i])) refuse("a dictionary has a key that cannot be one");
      container.depth = std::max(container.depth, items[i]->depth + 1);
    }
    if (container.depth > kDeepest) refuse(fmt::format("values are nested more than {} deep", kDeepest));
  }
  static bool is_key(const Value& value) {
    return value.kind == Kind::kText || value.kind == Kind::kInteger || value.kind == Kind::kReal || value.kind == Kind::kBool;
  }

  void remember(std::uint64_t place) {
    if (stack_.empty()) refuse("there is no value to remember");
    // Torch makes a table of this length. The writer counts from zero.
    if (place > memo_.size()) refuse(fmt::format("it remembers a value at {} where {} is next", place, memo_.size()));
    if (place == memo_.size()) memo_.push_back(nullptr);
    memo_[place] = stack_.back();
  }
  void recall(std::uint64_t place) {
    if (place >= memo_.size()) refuse(fmt::format("it recalls a value at {} of {}", place, memo_.size()));
    memo_[place]->is_shared = true;
    stack_.push_back(memo_[place]);
  }

  void read_global() {
    const std::string module = line(), name = line(), both = module + " " + name;
    const bool is_class = module == "__torch__" || module.starts_with("__torch__.");
    if (is_class && (module + ".").starts_with("__torch__.torch.classes.")) {
      input_error(
          "{} holds an object of {}.{}, which runs code of torch while it is loaded; such models (quantised ones, for example) "
          "are not read",
          where_, module, name);
    }
    const bool builds = std::find(kBuilders.begin(), kBuilders.end(), both) != kBuilders.end();
    if (pickle_kind_ == PickleKind::kPlainData && !builds)
      refuse(fmt::format("it names {}.{}, and holds plain data only", module, name));
    const bool known = builds || both == kRebuild || element_size(both) > 0;
    if (!is_class && !known) input_error("{} names {}.{}, which is no part of a model that can be read", where_, module, name);
    push({.kind = is_class ? Kind::kClass : Kind::kGlobal, .text = both});
  }

  // An object of a class of the archive, from its attributes.
  void build() {
    const Value* state = pop();
    const Value* type = pop();
    if (type->kind != Kind::kClass) refuse("an object has no class");
    push({.kind = Kind::kObject, .depth = state->depth + 1});
  }
  void call() {
    const Value* arguments = pop();
    const Value* function = pop();
    if (function->kind == Kind::kClass) {  // an enumeration's value
      push({.kind = Kind::kObject, .depth = arguments->depth + 1});
      return;
    }
    if (function->kind != Kind::kGlobal || arguments->kind != Kind::kTuple) refuse("what is called is no function");
    if (function->text == kRebuild) {
      check_tensor(*arguments);
      push({.kind = Kind::kTensor});
    } else if (function->text == "collections OrderedDict") {
      push({});  // hooks, which torch drops
    } else if (function->text == "torch device" || function->text == "builtins complex") {
      push({.kind = Kind::kText});
    } else if (std::find(kBuilders.begin(), kBuilders.end(), function->text) != kBuilders.end()) {
      check_container(function->text, *arguments);
      push({.kind = Kind::kObject, .depth = arguments->depth});
    } else {
      refuse(fmt::format("{} is called", function->text));
    }
  }
  void check_container(const std::string& function, const Value& arguments) const {
    const bool tagged = function.ends_with("restore_type_tag");
    if (arguments.items.size() != (tagged ? 2u : 1u)) refuse("a list or dictionary has no contents");
    const Value& contents = *arguments.items[0];
    if (contents.kind != Kind::kList && !(tagged && contents.kind == Kind::kDict)) refuse("a list or dictionary has no contents");
    if (!tagged) return;
    const Value& type = *arguments.items[1];
    if (type.kind != Kind::kText || type.text.size() > kLongestType ||
        static_cast<std::size_t>(std::count(type.text.begin(), type.text.end(), '[')) > kDeepest) {
      refuse("the type of a list or dictionary is not one");
    }
  }

  static std::uint64_t element_size(const std::string& storage) {
    const auto found =
        std::find_if(kStorages.begin(), kStorages.end(), [&](const auto& entry) { return entry.first == storage; });
    return found == kStorages.end() ? 0 : found->second;
  }

  // ("storage", type, key, device, elements): the memory of a tensor.
  void read_storage() {
    const Value* claim = pop();
    if (pickle_kind_ == PickleKind::kPlainData) refuse("it holds a tensor, and should hold plain data only");
    const std::vector<const Value*>& parts = claim->items;
    constexpr std::array kinds{Kind::kText, Kind::kGlobal, Kind::kText, Kind::kText, Kind::kInteger};
    if (claim->kind != Kind::kTuple || parts.size() != kinds.size()) refuse("the memory of a tensor is not described");
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (parts[i]->kind != kinds[i]) refuse("the memory of a tensor is not described");
    }
    const std::uint64_t size = element_size(parts[1]->text);
    const std::int64_t elements = parts[4]->integer;
    if (parts[0]->text != "storage" || size == 0 || elements < 0) refuse("the memory of a tensor is not described");
    if (pickle_kind_ == PickleKind::kValues && elements > 0) check_record(parts[2]->text, parts[1]->text, size, elements);
    push({.kind = Kind::kStorage, .integer = elements});
  }
  void check_record(const std::string& key, const std::string& type, std::uint64_t size, std::int64_t elements) const {
    const std::optional<std::uint64_t> bytes = record_size_(key);
    if (!bytes) input_error("{}: the record of tensor '{}' is missing", where_, key.substr(0, 80));
    if (*bytes / size != static_cast<std::uint64_t>(elements)) {
      input_error("{}: the record of tensor '{}' has {} bytes; {} elements of {} need {}", where_, key, *bytes, elements,
                  type.substr(type.find(' ') + 1), fmt::format("{}", static_cast<double>(elements) * static_cast<double>(size)));
    }
  }

  std::vector<std::int64_t> numbers(const Value& tuple) const {
    if (tuple.kind != Kind::kTuple) refuse("the shape of a tensor is not one");
    std::vector<std::int64_t> result;
    for (const Value* item : tuple.items) {
      if (item->kind != Kind::kInteger || item->integer < 0) refuse("the shape of a tensor is not one");
      result.push_back(item->integer);
    }
    return result;
  }
  // (memory, offset, sizes, strides, requires gradient, hooks): its last element must lie in the memory.
  void check_tensor(const Value& arguments) const {
    const std::vector<const Value*>& parts = arguments.items;
    if (parts.size() < 6 || parts.size() > 7 || parts[0]->kind != Kind::kStorage || parts[1]->kind != Kind::kInteger ||
        parts[4]->kind != Kind::kBool || parts[1]->integer < 0) {
      refuse("a tensor is not described");
    }
    const std::vector<std::int64_t> sizes = numbers(*parts[2]), strides = numbers(*parts[3]);
    if (sizes.size() != strides.size()) refuse("a tensor has not as many strides as sizes");
    std::int64_t last = parts[1]->integer, count = 1;
    bool overflow = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::int64_t step = 0;
      overflow = __builtin_mul_overflow(sizes[i], count, &count) || overflow;
      if (sizes[i] == 0) continue;
      overflow = __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last) || overflow;
    }
    const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    if (overflow || last > (std::int64_t{1} << 56) || (!empty && last >= parts[0]->integer)) {
      input_error("{}: a tensor of shape {} with strides {} from element {} on does not fit into its memory of {} elements",
                  where_, to_string(sizes), to_string(strides), parts[1]->integer, parts[0]->integer);
    }
  }

  // Does one instruction; false at the end.
  bool step(char instruction) {
    switch (instruction) {
      case '.':
        return false;
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case 'N':
        push({});
        return true;
      case '\x88':
      case '\x89':
        push({.kind = Kind::kBool});
        return true;
      case 'K':
        push({.kind = Kind::kInteger, .integer = byte()});
        return true;
      case 'M':
        push({.kind = Kind::kInteger, .integer = static_cast<std::int64_t>(little(2))});
        return true;
      case 'J':
        push({.kind = Kind::kInteger, .integer = static_cast<std::int32_t>(little(4))});
        return true;
      case '\x8a':
        if (byte() != 8) refuse("a number has not 8 bytes");
        push({.kind = Kind::kInteger, .integer = static_cast<std::int64_t>(little(8))});
        return true;
      case 'G':
        little(8);
        push({.kind = Kind::kReal});
        return true;
      case 'X':
        read_text();
        return true;
      case 'q':
        remember(byte());
        return true;
      case 'r':
        remember(little(4));
        return true;
      case 'h':
        recall(byte());
        return true;
      case 'j':
        recall(little(4));
        return true;
      default:
        return step_on_containers(instruction);
    }
  }
  void read_text() {
    const std::uint64_t size = little(4);
    if (size > pickle_.size() - at_) refuse("a text is cut off");
    push({.kind = Kind::kText, .text = std::string(as_text(pickle_.subspan(at_, size)))});
    at_ += size;
  }
  bool step_on_containers(char instruction) {
    switch (instruction) {
      case ')':
        push({.kind = Kind::kTuple});
        return true;
      case 't':
        push_tuple(pop_to_mark());
        return true;
      case '\x85':
      case '\x86':
      case '\x87':
        push_last(static_cast<std::size_t>(static_cast<unsigned char>(instruction) - 0x84));
        return true;
      case ']':
        push({.kind = Kind::kList});
        return true;
      case '}':
        push({.kind = Kind::kDict});
        return true;
      case 'e':
        add_to(Kind::kList, pop_to_mark());
        return true;
      case 'u':
        add_to(Kind::kDict, pop_to_mark());
        return true;
      case 's': {
        const Value* value = pop();
        const Value* key = pop();
        add_to(Kind::kDict, {key, value});
        return true;
      }
      case 'c':
        read_global();
        return true;
      case '\x81':  // of a class and an empty tuple: the object is made by what follows
        if (const Value* arguments = pop(); arguments->kind != Kind::kTuple || !arguments->items.empty())
          refuse("an object is made with arguments");
        if (stack_.empty() || stack_.back()->kind != Kind::kClass) refuse("an object has no class");
        return true;
      case 'b':
        build();
        return true;
      case 'R':
        call();
        return true;
      case 'Q':
        read_storage();
        return true;
      default:
        refuse(fmt::format("instruction {} is none that torch's writer uses",
                           static_cast<int>(static_cast<unsigned char>(instruction))));
    }
  }

  std::span<const std::byte> pickle_;
  const std::string& where_;
  PickleKind pickle_kind_;
  const RecordSize& record_size_;
  std::size_t at_ = 0;
  std::vector<std::unique_ptr<Value>> values_;
  std::vector<Value*> stack_, memo_;
  std::vector<std::size_t> marks_;
};

}  // namespace

void check_pickle(std::span<const std::byte> pickle, const std::string& where, PickleKind kind, const RecordSize& record_size) {
  PickleReader(pickle, where, kind, record_size).read();
}

}  // namespace holdfast::model::torchscript
