// The text of a file; after a NUL byte, lines of overrides.
#include "holdfast/core/config.h"

#include "fuzz.h"

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace

void holdfast::fuzz_config(std::span<const std::byte> input) {
  const std::string_view text = as_text(input);
  const std::size_t nul = text.find('\0');
  const std::string_view overrides = nul == std::string_view::npos ? std::string_view() : text.substr(nul + 1);
  const Config config = Config::parse(std::string(text.substr(0, nul)), "input.toml", lines_of(overrides));
  const ConfigTable root = config.root();
  root.integer("seed", 0, at_least(0));
  root.text("name", "none");
  const ConfigTable attack = root.table("attack");
  attack.real("epsilon", 1, above(0));
  attack.flag("trace", false);
  attack.texts("metrics", std::vector<std::string>{});
  attack.reals("radii", std::vector<double>{}, between(0, 10));
  for (const ConfigTable& model : root.tables("models")) model.text("name", std::nullopt);
  require(!config.resolved().dump().empty());
  config.finish();
}
