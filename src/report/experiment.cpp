#include "holdfast/report/experiment.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json_error.h"
#include "holdfast/core/words.h"
#include "holdfast/report/text_table.h"
#include "kept_results.h"

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

// `specific` alone rewards nearly constant maps: it is shown only where lift stands beside it.
bool column_has(const Json& table, std::size_t column, std::string_view level) {
  if (level == "specific" && !column_has(table, column, "lift")) return false;
  const Json& rows = table.at("rows");
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Json& row) { return row.at("values")[column].contains(std::string(level)); });
}

bool is_count(const Json& table, std::size_t column) {
  const auto kinds = table.find("kinds");
  return kinds != table.end() && (*kinds)[column] == "count";
}

std::string count(const Json& value) {
  return value.is_number() ? fmt::format("{:.0f}", value.get<double>()) : "-";
}

using LevelNames = std::span<const std::pair<const char*, const char*>>;

// Every column of numbers with those of the levels that any of its values has beside it.
TextTable flatten(const Json& table, LevelNames levels = kLevels) {
  TextTable text;
  text.header = table.at("keys").get<std::vector<std::string>>();
  const std::vector<std::string> columns = table.at("columns");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text.header.push_back(columns[i]);
    for (const auto& [level, head] : levels) {
      if (column_has(table, i, level)) text.header.emplace_back(head);
    }
  }
  for (const Json& row : table.at("rows")) {
    std::vector<std::string> cells = row.at("keys");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Json& value = row.at("values")[i];
      cells.push_back(is_count(table, i) ? count(value.at("value")) : with_interval(value));
      for (const auto& [level, head] : levels) {
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

std::string capitalised(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

// What the number is: the first sentence of the evidence, to a semicolon or a stop outside of parentheses. What the ends of a
// share's range are, is said once on the page.
std::string first_sentence(const std::string& why) {
  constexpr std::string_view kPrefix = "Number: ";
  std::string text = why;
  if (const std::size_t at = text.find(kPrefix); at != std::string::npos) text.erase(0, at + kPrefix.size());
  for (const char* range : {", from the share ", ", from those "}) text = text.substr(0, text.find(range));
  int depth = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
    if (depth == 0 && (text[i] == ';' || text[i] == '.' || text[i] == ':') && text[i + 1] == ' ') return text.substr(0, i);
  }
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Which parts of a claim hold, are refuted and are open, where the verdict has parts: " Surely refuted: A; B."
std::string parts_in_words(const Json& verdict) {
  std::string text;
  for (const auto& [head, word] : {std::pair("Surely holds", "holds"),
                                   {"Surely refuted", "does not hold"},
                                   {"Both in some cases", "holds in part"},
                                   {"Open", "not decided"}}) {
    std::vector<std::string> names;
    for (const Json& part : verdict.value("parts", Json::array())) {
      if (part.at("verdict") == word) names.push_back(part.at("name"));
    }
    if (!names.empty()) text += fmt::format(" {}: {}.", head, fmt::join(names, "; "));
  }
  return text;
}

// Seconds of machines that an experiment has taken, by its name.
using Costs = std::map<std::string, double>;

// "20 minutes", "3 hours", "2 days".
std::string duration(double seconds) {
  const auto [number, unit] = seconds < 90 * 60     ? std::pair(seconds / 60, "minute")
                              : seconds < 36 * 3600 ? std::pair(seconds / 3600, "hour")
                                                    : std::pair(seconds / 86400, "day");
  return counted(std::max<std::int64_t>(1, std::llround(number)), unit);
}

// What would decide an open verdict, and what that would cost: " To decide it: ..."
std::string price(const Json& verdict, const Costs& costs) {
  if (!verdict.contains("times")) return "";
  const double times = verdict.at("times");
  const std::int64_t seeds = verdict.at("seeds");
  std::string text = fmt::format(" To decide it: about {:.1f} times as many seeds", times);
  if (seeds > 0) text += fmt::format(" ({:.0f})", std::ceil(times * static_cast<double>(seeds)));
  if (const auto cost = costs.find(verdict.at("experiment")); cost != costs.end() && cost->second > 0)
    text += fmt::format(", {} more of the machines that made it, which took {}", duration((times - 1) * cost->second),
                        duration(cost->second));
  return text + ".";
}

// A verdict and its evidence, as a line of a list: "- **Holds.** Yes: ... Evidence: 0.75 [0.62, 1.00]: share of ... (`fig2`)."
std::string verdict_markdown(const Json& verdict, const Costs& costs) {
  const std::string experiment = verdict.at("experiment"), scale = verdict.at("scale"),
                    evidence = first_sentence(verdict.at("why"));
  const int seeds = verdict.at("seeds");
  const std::string where = fmt::format("`{}`, {} scale{}", experiment, scale, seeds > 0 ? ", " + counted(seeds, "seed") : "");
  const std::string number = verdict.at("number").is_number() ? with_interval(verdict, "number") + ": " : "";
  const std::string plain = verdict.contains("plain") ? " " + verdict.at("plain").get<std::string>() : "";
  return fmt::format("- **{}.**{}{} Evidence: {}{} ({}).{}\n", capitalised(judgement(verdict, scale)), plain,
                     parts_in_words(verdict), number, evidence, where, price(verdict, costs));
}

// Each claim once, with all of its verdicts below it.
std::string claims_markdown(const Json& verdicts, const Costs& costs) {
  std::string text, last;
  for (const Json& verdict : verdicts) {
    const std::string claim =
        fmt::format("**{}.** The claim: {}.\n\n", verdict.at("claim").get<std::string>(), verdict.at("says").get<std::string>());
    if (claim != last) text += (last.empty() ? "" : "\n") + claim;
    text += verdict_markdown(verdict, costs);
    last = claim;
  }
  return text + "\n";
}

// Where the numbers are: an experiment and its tables in a line.
std::vector<std::string> experiment_line(const Json& results) {
  std::vector<std::string> tables;
  for (const Json& table : results.at("tables"))
    tables.push_back(fmt::format("{} ({})", table.at("name").get<std::string>(), table.at("rows").size()));
  return {"`" + results.at("experiment").get<std::string>() + "`", results.at("title"), results.at("scale"),
          fmt::format("{}", fmt::join(tables, ", "))};
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
    const std::string plain = verdict.contains("plain") ? verdict.at("plain").get<std::string>() + " " : "";
    text += fmt::format("{} {} ({}): {}; {}{}\n", verdict.at("claim").get<std::string>(), judgement(verdict, results.at("scale")),
                        with_interval(verdict, "number"), verdict.at("says").get<std::string>(), plain,
                        verdict.at("why").get<std::string>());
  }
  for (const Json& note : results.at("notes")) text += fmt::format("note: {}\n", note.get<std::string>());
  return text;
}

std::vector<std::string> kept_experiments(const std::string& folder) {
  return result_files(folder);
}

std::string folder_name(const std::string& folder) {
  const std::filesystem::path plain = std::filesystem::path(folder).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

namespace {

// The levels without which a number misleads; the site has all of them.
constexpr std::pair<const char*, const char*> kFewLevels[] = {{"lift", "lift"}, {"effective_sets", "effective sets"}};

// Experiments that test no claim: the tables themselves.
std::string tables_markdown(const std::string& folder, const std::vector<std::string>& names, const std::string& words) {
  std::string text = fmt::format(
      "# {0}: results of our own experiments\n\n"
      "`holdfast report results/{0} --out docs/{0}.md` makes this page from `results/{0}`. Do not edit it. Charts and CSV files "
      "are "
      "on the site that this command makes:\n\n    holdfast report results/{0} --out site\n\n{1}",
      folder_name(folder), words);
  for (const std::string& name : names) {
    const Json results = read_json(folder + "/" + name + ".json");
    text += fmt::format("## {}\n\n`{}`, {} scale.\n", results.at("title").get<std::string>(),
                        results.at("experiment").get<std::string>(), results.at("scale").get<std::string>());
    for (const Json& table : results.at("tables")) {
      text += fmt::format("\n**{}.** {}\n\n{}", capitalised(table.at("name")), table.at("caption").get<std::string>(),
                          markdown(flatten(table, kFewLevels)));
    }
    text += "\n";
    for (const Json& note : results.at("notes")) text += fmt::format("- {}\n", note.get<std::string>());
  }
  return text;
}

std::string claims_page(const std::string& folder, const std::vector<std::string>& names, const std::string& words) {
  const std::string paper = folder_name(folder);
  std::string text = fmt::format(
      "# {0}: what became of the paper's claims\n\n"
      "`holdfast report results/{0} --out docs/{0}.md` makes this page from `results/{0}`. Do not edit it.\n\n"
      "Below each claim stand our verdicts, one for each experiment that tested it. A verdict has one number with its 95 % "
      "interval. The interval is over trained networks (seeds) where there are several, else over samples. If the number is a "
      "share of cases, the interval goes from the cases that surely speak for the claim to those that do not surely speak "
      "against it. The rules are in [How verdicts are judged](reproduce.md#how-verdicts-are-judged).\n\n{1}"
      "All tables, charts with the paper's own numbers, the whole evidence and CSV files are on the site that this command "
      "makes:\n\n    holdfast report results/r2et results/lens --out site\n\n## Claims\n\n",
      paper, words);
  Costs costs;
  for (const std::string& name : names) {
    const Json manifest = read_json(folder + "/" + name + ".manifest.json");
    for (const Json& work : manifest.value("work", Json::array())) costs[paper + "/" + name] += work.at("seconds").get<double>();
  }
  text += claims_markdown(read_json(folder + "/verdicts.json"), costs);
  TextTable experiments{.header = {"experiment", "what it shows", "scale", "tables (rows)"}, .rows = {}};
  for (const std::string& name : names) experiments.rows.push_back(experiment_line(read_json(folder + "/" + name + ".json")));
  return text + "## Experiments\n\n" + markdown(experiments);
}

}  // namespace

std::string results_markdown(const std::string& folder) {
  const std::vector<std::string> names = result_files(folder);
  // What the words mean, where the folder says it.
  const std::string own = folder + "/words.md", words = file_exists(own) ? read_text(own) + "\n" : "";
  try {
    const bool has_claims = !read_json(folder + "/verdicts.json").empty();
    return has_claims ? claims_page(folder, names, words) : tables_markdown(folder, names, words);
  } catch (const Json::exception& error) {
    input_error("{}: a file is not of an experiment of this version: {}", folder, json_reason(error));
  }
}

std::string table_csv(const Json& table) {
  std::vector<std::string> header = table.at("keys");
  const std::vector<std::string> columns = table.at("columns");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (const char* part : {"", " low", " high", " n"}) header.push_back(columns[i] + part);
    for (const auto& [level, head] : kLevels)
      if (column_has(table, i, level)) header.push_back(columns[i] + " " + head);
  }
  std::string text = format_csv_row(header);
  const auto exact = [](const Json& value) { return value.is_number() ? value.dump() : std::string(); };
  for (const Json& row : table.at("rows")) {
    std::vector<std::string> cells = row.at("keys");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Json& value = row.at("values")[i];
      for (const char* part : {"value", "low", "high", "n"}) cells.push_back(exact(value.value(part, Json())));
      for (const auto& [level, head] : kLevels)
        if (column_has(table, i, level)) cells.push_back(exact(value.value(level, Json())));
    }
    text += format_csv_row(cells);
  }
  return text;
}

}  // namespace holdfast::report
