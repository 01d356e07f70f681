#include "holdfast/core/json.h"

#include <algorithm>
#include <mutex>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json_error.h"

namespace holdfast {
namespace {

// Our own files nest a few levels; writing a value and comparing two recurse, so depth is limited where text comes in.
constexpr int kDeepest = 200;

std::int64_t line_of(const std::string& text, std::size_t position) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(position, text.size()));
  return 1 + std::count(text.begin(), end, '\n');
}

void check_depth(const std::string& text, const std::string& where) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quoted) {
      if (letter == '\\') ++i;
      if (letter == '"') quoted = false;
    } else if (letter == '"') {
      quoted = true;
    } else if (letter == '[' || letter == '{') {
      if (++depth > kDeepest) input_error("{}:{}: the JSON is nested more than {} deep", where, line_of(text, i), kDeepest);
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
}

// "parse error at line 1, column 2: syntax error while ...": the line is said by us.
std::string without_place(const std::string& reason) {
  const std::size_t start = reason.starts_with("parse error at ") ? reason.find(": ") : std::string::npos;
  std::string text = start == std::string::npos ? reason : reason.substr(start + 2);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// For the sentence about a file that holds something else.
struct LastRead {
  std::mutex mutex;
  std::string path;
};
LastRead last_read;

}  // namespace

std::vector<double> numbers_or_nan(const Json& array) {
  std::vector<double> numbers;
  for (const Json& one : array) numbers.push_back(number_or_nan(one));
  return numbers;
}

Json parse_json(const std::string& text, const std::string& where) {
  check_depth(text, where);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // `byte` counts from 1 and points behind the offending letter.
    input_error("{}:{}: not valid JSON: {}", where, line_of(text, error.byte > 0 ? error.byte - 1 : 0),
                without_place(json_reason(error)));
  } catch (const Json::out_of_range& error) {
    input_error("{}: not valid JSON: {}", where, json_reason(error));
  }
}

Json read_json(const std::string& path) {
  Json json = parse_json(read_text(path), path);
  const std::lock_guard lock(last_read.mutex);
  last_read.path = path;
  return json;
}

std::string json_reason(const Json::exception& error) {
  const std::string text = error.what();  // "[json.exception.out_of_range.403] key 'rows' not found"
  const std::size_t start = text.find("] ");
  return text.starts_with('[') && start != std::string::npos ? text.substr(start + 2) : text;
}

std::string wrong_json_sentence(const Json::exception& error) {
  const std::lock_guard lock(last_read.mutex);
  if (last_read.path.empty()) return {};
  return fmt::format("{} does not hold what it should: {}", last_read.path, json_reason(error));
}

std::string dump_json(const Json& json) {
  // Names of files and features may be anything; text that is not UTF-8 must not stop a result from being written.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_json(const std::string& path, const Json& json) {
  write_atomic(path, dump_json(json));
}

}  // namespace holdfast
