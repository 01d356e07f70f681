// Sources are read with torch's own lexer and parser, so that both see the same program.
#include <algorithm>
#include <sstream>

#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>

#include "holdfast/core/error.h"
#include "refuse.h"
#include "script.h"

namespace holdfast::model::torchscript {
namespace source_code {

using torch::jit::TreeRef;

constexpr std::size_t kDeepest = 200;  // torch's parser and compiler go down by recursion, some kilobytes of stack for each
constexpr std::size_t kMostEmptyLines = 200;
constexpr std::size_t kMostBranches = 1000;

// How deep an expression can become at most: brackets that are open, and what was put together since the last comma in each.
class Depth {
 public:
  void open() {
    ++parts_.back();
    parts_.push_back(0);
  }
  bool close() {
    parts_.pop_back();
    return !parts_.empty();
  }
  void join() { ++parts_.back(); }
  void separate() { parts_.back() = 0; }
  void indent(int by) { indents_ += by; }
  std::size_t value() const {
    std::size_t sum = static_cast<std::size_t>(std::max(indents_, 0));
    for (const std::size_t part : parts_) sum += part + 1;
    return sum;
  }

 private:
  std::vector<std::size_t> parts_{0};
  int indents_ = 0;
};

void refuse_depth(const std::string& text, const std::string& where) {
  if (text.find('\0') != std::string::npos || text.find("\\\n") != std::string::npos)
    input_error("{} holds a letter that torch does not write", where);
  // The lexer steps over a line without code by recursion.
  std::size_t empty = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t\r\v\f");
    empty = first == std::string::npos || line[first] == '#' ? empty + 1 : 0;
    if (empty > kMostEmptyLines) input_error("{} has more than {} empty lines in a row", where, kMostEmptyLines);
  }
  Depth depth;
  std::size_t branches = 0;
  for (torch::jit::Lexer lexer(std::make_shared<torch::jit::Source>(text)); lexer.cur().kind != torch::jit::TK_EOF;
       lexer.next()) {
    switch (lexer.cur().kind) {
      case '(':
      case '[':
      case '{':
        depth.open();
        break;
      case ')':
      case ']':
      case '}':
        if (!depth.close()) input_error("{} closes a bracket that is not open", where);
        break;
      case ',':
      case torch::jit::TK_NEWLINE:
        depth.separate();
        break;
      case torch::jit::TK_INDENT:
        depth.indent(1);
        depth.separate();
        break;
      case torch::jit::TK_DEDENT:
        depth.indent(-1);
        break;
      case torch::jit::TK_IDENT:
      case torch::jit::TK_NUMBER:
      case torch::jit::TK_STRINGLITERAL:
        break;
      case torch::jit::TK_ELIF:
        if (++branches > kMostBranches) input_error("{} has more than {} branches", where, kMostBranches);
        break;
      default:
        depth.join();
    }
    if (depth.value() > kDeepest) input_error("{} nests an expression more than {} deep", where, kDeepest);
  }
}

bool is_name(const TreeRef& tree, const char* name) {
  return tree->kind() == torch::jit::TK_VAR && torch::jit::Var(tree).name().name() == name;
}

bool is_member_of(const TreeRef& tree, const char* owner) {
  return tree->kind() == '.' && is_name(torch::jit::Select(tree).value().tree(), owner);
}

// Numbers, texts, and lists of them; what the writer puts around an empty list, and a device.
bool is_literal(const TreeRef& tree) {
  switch (tree->kind()) {
    case torch::jit::TK_CONST:
    case torch::jit::TK_STRINGLITERAL:
    case torch::jit::TK_TRUE:
    case torch::jit::TK_FALSE:
    case torch::jit::TK_NONE:
      return true;
    case torch::jit::TK_VAR:
      return is_name(tree, "inf") || is_name(tree, "nan");
    case '.':
      return is_member_of(tree, "CONSTANTS");
    case torch::jit::TK_UNARY_MINUS:
    case torch::jit::TK_LIST_LITERAL:
    case torch::jit::TK_TUPLE_LITERAL:
    case torch::jit::TK_DICT_LITERAL:
    case torch::jit::TK_LIST:
      return std::all_of(tree->trees().begin(), tree->trees().end(), is_literal);
    case torch::jit::TK_APPLY: {
      const torch::jit::Apply call(tree);
      const auto inputs = call.inputs();
      const TreeRef callee = call.callee().tree();
      if (is_name(callee, "annotate")) return inputs.size() == 2 && is_literal(inputs[1].tree());
      return is_member_of(callee, "torch") && torch::jit::Select(callee).selector().name() == "device" && inputs.size() == 1 &&
             inputs[0].kind() == torch::jit::TK_STRINGLITERAL;
    }
    default:
      return false;
  }
}

void refuse_unless_literal(const TreeRef& value, const std::string& what, const std::string& where) {
  if (is_literal(value)) return;
  input_error("{} runs code while it is loaded ({} is computed); a model here runs only when it is asked for logits", where,
              what);
}

// Everything below a definition, definitions inside it too.
void check_tree(const TreeRef& tree, const std::string& where) {
  if (tree->kind() == torch::jit::TK_DEF && torch::jit::Def(tree).name().name() == "__setstate__") {
    input_error("{} runs code while it is loaded (its __setstate__); a model here runs only when it is asked for logits", where);
  }
  if (tree->kind() == torch::jit::TK_PARAM) {
    const auto value = torch::jit::Param(tree).defaultValue();
    if (value.present()) refuse_unless_literal(value.get().tree(), "the default of an argument", where);
  }
  for (const TreeRef& part : tree->trees()) check_tree(part, where);
}

void check_class(const TreeRef& tree, const std::string& where) {
  for (const auto& statement : torch::jit::ClassDef(tree).body()) {
    if (statement.kind() != torch::jit::TK_ASSIGN) continue;
    const torch::jit::Assign assign(statement);
    // __annotations__["0"] = Tensor: a type, which is not run.
    const bool is_type = assign.lhs().kind() == torch::jit::TK_SUBSCRIPT;
    if (!is_type && assign.rhs().present()) refuse_unless_literal(assign.rhs().get().tree(), "a constant of a class", where);
  }
  check_tree(tree, where);
}

void check_source(const std::string& text, const std::string& where) {
  refuse_depth(text, where);
  torch::jit::Parser parser(std::make_shared<torch::jit::Source>(text));
  torch::jit::Lexer& lexer = parser.lexer();
  while (lexer.cur().kind != torch::jit::TK_EOF) {
    const int kind = lexer.cur().kind;
    if (kind == torch::jit::TK_CLASS_DEF) {
      check_class(parser.parseClass(), where);
    } else if (kind == torch::jit::TK_DEF) {
      check_tree(parser.parseFunction(/*is_method=*/false), where);
    } else {
      // "op_version_set = 1" and "import a.b" of older torch.
      const bool known =
          kind == torch::jit::TK_IMPORT || (kind == torch::jit::TK_IDENT && lexer.cur().text() == "op_version_set");
      if (!known) input_error("{} has something else than classes and functions", where);
      while (lexer.cur().kind != torch::jit::TK_NEWLINE && lexer.cur().kind != torch::jit::TK_EOF) lexer.next();
      lexer.nextIf(torch::jit::TK_NEWLINE);
    }
  }
}

}  // namespace source_code

void refuse_code_that_runs_at_loading(const Archive& archive) {
  for (const auto& [name, text] : archive.sources()) {
    const std::string where = archive.path() + ": " + name;
    try {
      source_code::check_source(text, where);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      input_error("{} is not TorchScript: {}", where, essence(error.what()));
    }
  }
}

}  // namespace holdfast::model::torchscript
