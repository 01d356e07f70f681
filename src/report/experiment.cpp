#include "holdfast/report/experiment.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/words.h"
#include "holdfast/report/text_table.h"

namespace holdfast::report {
namespace {

// What may stand beside a value, and the head of its column.
constexpr std::pair<const char*, const char*> kLevels[] = {{"published", "paper"},
                                                           {"chance", "chance"},
                                                           {"between", "between"},
                                                           {"specific", "specific"},
                                                           {"lift", "lift"},
                                                           {"effective_sets", "effective sets"},
                                                           {"own_advantage", "own advantage"}};

struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

// Shares with three digits; what is large or tiny with those that count.
std::string number(const Json& value) {
  if (!value.is_number()) return "-";
  const double plain = value.get<double>();
  const double size = std::abs(plain);
  if (size > 0 && size < 5e-4) return fmt::format("{:.1e}", plain);
  return size < 10 ? fmt::format("{:.3f}", plain) : fmt::format("{:.4g}", plain);
}

std::string with_interval(const Json& value, const char* key = "value") {
  const std::string mean = number(value.at(key));
  return value.at("low").is_number() ? fmt::format("{} [{}, {}]", mean, number(value.at("low")), number(value.at("high"))) : mean;
}

bool column_has(const Json& table, std::size_t column, const char* level) {
  const Json& rows = table.at("rows");
  return std::any_of(rows.begin(), rows.end(), [&](const Json& row) { return row.at("values")[column].contains(level); });
}

// Whether a column counts something. Results that were kept before columns had kinds are guessed: whole numbers alone, all of
// them without an interval, and some above 1 or none above 0, so that no share is meant.
bool is_count(const Json& table, std::size_t column) {
  if (table.contains("kinds")) return table.at("kinds")[column] == "count";
  bool above_zero = false, above_one = false;
  for (const Json& row : table.at("rows")) {
    const Json& value = row.at("values")[column];
    if (!value.at("value").is_number()) continue;
    const double plain = value.at("value").get<double>();
    if (value.at("low").is_number() || plain < 0 || plain != std::floor(plain)) return false;
    above_zero = above_zero || plain > 0;
    above_one = above_one || plain > 1;
  }
  return (above_one || !above_zero) &&
         std::ranges::none_of(kLevels, [&](const auto& level) { return column_has(table, column, level.first); });
}

std::string count(const Json& value) {
  return value.is_number() ? fmt::format("{:.0f}", value.get<double>()) : "-";
}

// Every column of numbers with the levels that any of its values has beside it.
TextTable flatten(const Json& table) {
  TextTable text;
  text.header = table.at("keys").get<std::vector<std::string>>();
  const std::vector<std::string> columns = table.at("columns");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text.header.push_back(columns[i]);
    for (const auto& [level, head] : kLevels) {
      if (column_has(table, i, level)) text.header.emplace_back(head);
    }
  }
  for (const Json& row : table.at("rows")) {
    std::vector<std::string> cells = row.at("keys");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Json& value = row.at("values")[i];
      cells.push_back(is_count(table, i) ? count(value.at("value")) : with_interval(value));
      for (const auto& [level, head] : kLevels) {
        if (column_has(table, i, level)) cells.push_back(value.contains(level) ? number(value.at(level)) : "-");
      }
    }
    text.rows.push_back(std::move(cells));
  }
  return text;
}

// Firm words for numbers that only show that all of it works would mislead.
std::string judgement(const Json& verdict, const std::string& scale) {
  return verdict.at("verdict").get<std::string>() + (scale == "quick" ? " (quick: means little)" : "");
}

TextTable verdict_table(const Json& verdicts) {
  TextTable table{.header = {"claim", "it says", "verdict", "number", "seeds", "experiment"}, .rows = {}};
  for (const Json& verdict : verdicts) {
    table.rows.push_back(
        {verdict.at("claim"), verdict.at("says"), judgement(verdict, verdict.at("scale")), with_interval(verdict, "number"),
         std::to_string(verdict.at("seeds").get<int>()),
         fmt::format("{} ({})", verdict.at("experiment").get<std::string>(), verdict.at("scale").get<std::string>())});
  }
  return table;
}

// A bar would end the cell.
std::string escaped(const std::string& cell) {
  std::string result;
  for (const char letter : cell) result += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return result;
}

std::string markdown(const TextTable& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + escaped(cell) + " |";
    return text + "\n";
  };
  std::string text = line(table.header) + "|";
  for (std::size_t i = 0; i < table.header.size(); ++i) text += "---|";
  text += "\n";
  for (const std::vector<std::string>& row : table.rows) text += line(row);
  return text;
}

// The verdicts at a glance, then what decides each.
std::string verdicts_markdown(const Json& verdicts) {
  std::string text = "## Verdicts\n\n" + markdown(verdict_table(verdicts)) + "\nWhat decides each:\n\n";
  for (const Json& verdict : verdicts) {
    text += fmt::format("- **{}**, {}. {}\n", verdict.at("claim").get<std::string>(), verdict.at("experiment").get<std::string>(),
                        verdict.at("why").get<std::string>());
  }
  return text + "\n";
}

// "dataset mnist, epsilon 0.3, training (steps 4000, batch size 10)"
std::string in_words(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [name, part] : value.items()) {
    const std::string words = part.is_object() ? fmt::format("({})", in_words(part)) : in_words(part);
    parts.push_back(value.is_array() ? words : fmt::format("{} {}", name, words));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

constexpr std::size_t kMostRows = 500;  // of a table on a page that is read

std::string experiment_markdown(const Json& results, const Json& manifest) {
  std::string text =
      fmt::format("## {}: {}\n\n", results.at("experiment").get<std::string>(), results.at("title").get<std::string>());
  text += fmt::format("`{}`; {}.", fmt::join(manifest.at("command").get<std::vector<std::string>>(), " "),
                      manifest.at("started").get<std::string>().substr(0, 10));
  for (const Json& work : manifest.at("work")) {
    text += fmt::format(" {} and {}, {:.0f} s of one thread, on {}.", counted(work.at("networks").get<int>(), "network"),
                        counted(work.at("cells").get<int>(), "cell"), work.at("seconds").get<double>(),
                        work.at("on").get<std::string>());
  }
  text += "\n\n";
  for (const auto& [name, value] : results.at("settings").items()) text += fmt::format("- {}: {}\n", name, in_words(value));
  for (const Json& table : results.at("tables")) {
    const std::size_t rows = table.at("rows").size();
    text +=
        fmt::format("\n**{}.** {}\n\n{}", table.at("name").get<std::string>(), table.at("caption").get<std::string>(),
                    rows > kMostRows ? fmt::format("{} rows, in the experiment's JSON file.\n", rows) : markdown(flatten(table)));
  }
  for (const Json& figure : results.at("figures")) {
    text += fmt::format("\n**{}** (drawn in the run's report.html). {}\n", figure.at("name").get<std::string>(),
                        figure.at("caption").get<std::string>());
  }
  if (!results.at("notes").empty()) text += "\nNotes:\n";
  for (const Json& note : results.at("notes")) text += "- " + note.get<std::string>() + "\n";
  return text + "\n";
}

// Tables first, then figures, then the rest.
std::vector<std::string> result_files(const std::string& folder) {
  std::vector<std::string> names;
  if (!folder_exists(folder)) input_error("{}: there is no such folder", folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".json" && path.stem().extension() != ".manifest" && path.stem() != "verdicts")
      names.push_back(path.stem().string());
  }
  const auto order = [](const std::string& name) {
    return std::tuple(name.starts_with("table") ? 0 : name.starts_with("fig") ? 1 : 2, name);
  };
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) { return order(a) < order(b); });
  if (names.empty()) input_error("{}: no results lie here; `holdfast reproduce ... --results FOLDER` puts them", folder);
  return names;
}

}  // namespace

std::string experiment_text(const Json& results) {
  std::string text = fmt::format("{}: {} ({} scale)\n", results.at("experiment").get<std::string>(),
                                 results.at("title").get<std::string>(), results.at("scale").get<std::string>());
  for (const Json& table : results.at("tables")) {
    const TextTable flat = flatten(table);
    text += fmt::format("\n{}: {}\n{}", table.at("name").get<std::string>(), table.at("caption").get<std::string>(),
                        text_table(flat.header, flat.rows));
  }
  if (!results.at("verdicts").empty()) text += "\n";
  for (const Json& verdict : results.at("verdicts")) {
    text += fmt::format("{} {} ({}): {}; {}\n", verdict.at("claim").get<std::string>(), judgement(verdict, results.at("scale")),
                        with_interval(verdict, "number"), verdict.at("says").get<std::string>(),
                        verdict.at("why").get<std::string>());
  }
  for (const Json& note : results.at("notes")) text += fmt::format("note: {}\n", note.get<std::string>());
  return text;
}

std::string results_markdown(const std::string& folder) {
  const std::vector<std::string> names = result_files(folder);
  const std::filesystem::path plain = std::filesystem::path(folder).lexically_normal();
  const std::string paper = (plain.has_filename() ? plain : plain.parent_path()).filename().string();
  std::string text = fmt::format(
      "# {0}: claims and results\n\nThis page is made from `results/{0}` by `holdfast report results/{0} --out docs/{0}.md`; do "
      "not edit "
      "it.\nIntervals are 95 %: over seeds where a row has several trained networks, else over the samples of one network. "
      "\"paper\" is the published number.\nWhere a verdict's number is a share of cases, its range goes from those that surely "
      "speak for the claim to those that do not surely speak against it: [how verdicts are judged](reproduce.md).\n\n",
      paper);
  try {
    text += verdicts_markdown(read_json(folder + "/verdicts.json"));
    for (const std::string& name : names) {
      text += experiment_markdown(read_json(folder + "/" + name + ".json"), read_json(folder + "/" + name + ".manifest.json"));
    }
  } catch (const Json::exception& error) {
    input_error("{}: a file is not of an experiment of this version: {}", folder, error.what());
  }
  text.pop_back();
  return text;
}

}  // namespace holdfast::report
