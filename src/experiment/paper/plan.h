// What the TOML files of a paper and of its experiments say, as structs. docs/own-tables.md describes the files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "setting.h"

namespace holdfast::experiment::paper {

// A file that the program carries: "r2et/table1.toml" of configs/. Throws kUsage when there is none.
std::string carried_file(const std::string& path);

// A way to train networks, with the weights that are tried.
struct Method {
  std::string name = {};                     // "R2ET\\H, softplus"
  std::string paper = {};                    // the row of the paper's tables it is held against; empty: ours
  std::string recipe = {};                   // name, or a whole call with places to fill: "pgd(preset={preset}{inner})"
  std::string options = {};                  // of the recipe, always given: "activation=softplus"
  std::vector<std::string> grid = {};        // weights to choose from, on tables; empty: nothing to choose
  std::vector<std::string> other_grid = {};  // the same on images and graphs
  std::string architecture = {};             // instead of the setting's
  std::string differs = {};                  // from the others, in words
  std::vector<std::string> tags = {};
  std::string only = {};  // kind of the settings that it is for; empty: all
  bool best_epoch =
      false;  // ends with the weights of the epoch with the best AUC on the validation samples, not with the last ones

  bool is_r2et() const { return paper.rfind("R2ET", 0) == 0; }
  bool is_softplus() const { return options.find("softplus") != std::string::npos || recipe == "sp"; }
};

// The attack with which weights are chosen.
struct Choice {
  std::string name, attack, select;
};

// A name and the call it stands for.
struct NamedCall {
  std::string name, call;
  std::vector<std::string> attacks = {};  // of an explainer: those that it is attacked with; empty: all
  bool needs_layers = false;              // of an explainer: it walks over the network's layers
};

// A column of a table. Its numbers come from attacked cells (metric), from a measure, from the networks (of), or from the cells
// of another column (from and what).
struct ColumnPlan {
  std::string name;
  ColumnKind kind = ColumnKind::kShare;
  std::string metric, attack, select, aim, explainer, choice, samples;
  std::string rows;  // "valid": perturbed rows of a table stay valid rows, without switches of categories
  std::string measure, of, from, what;
  std::string published;  // column of published.csv
  std::string only;       // kind of the settings that have it, or a field that must not be 0
  std::vector<std::string> levels = {"chance", "between", "specific"};  // that are shown beside it
};

struct TablePlan {
  std::string name, caption, label;  // label: in figures, where it is not the name
  std::vector<std::string> keys;     // "dataset: {name}"
  std::vector<ColumnPlan> columns;
  std::vector<std::string> settings, methods;       // selectors; empty: all of the experiment's
  std::string published_method, published_dataset;  // where published.csv is looked up
  bool is_analysed = false;                         // its rows are made by the experiment's C++ function
  bool has_one_row = false;                         // for each method, whatever explainers and attacks there are
  bool is_hidden = false;                           // for the C++ function alone

  ResultTable empty() const;
};

struct FigurePlan {
  std::string name, caption, spec;           // spec: a file with a Vega-Lite specification; empty: pictures
  std::vector<std::string> tables, columns;  // whose numbers are drawn
  std::vector<std::string> fields;           // "measure: {column}"; a name that ends in # holds numbers
  std::vector<std::string> rows;             // conditions, as of claims
  bool is_analysed = false;
};

// A claim of the paper. Where `columns` is given it is judged from a table alone: the cases are the rows that meet the
// conditions, in each of the columns, minus the row that `minus` names, or minus another column; all must be above `limit`.
struct Claim {
  std::string id, says, why;
  std::string plain;           // the claim for who has not read the paper: what "whether" goes on with
  std::vector<double> limits;  // for C++
  std::string table, what, case_name, also, minus_column;
  std::vector<std::string> columns, rows, minus;  // conditions: "attack=top_t|mass_center"
  double limit = 0;
};

// Values of something that an experiment's C++ function varies.
struct Factor {
  std::string name;
  std::vector<std::string> values;
};

struct Note {
  std::string text;
  std::vector<std::string> settings;  // with selectors: one note for each setting
};

struct Paper {
  std::string name, citation;
  std::vector<std::string> experiments;  // in the order of `list`
  std::vector<Setting> settings;
  std::map<std::string, Setting> bases;
  std::vector<Method> methods;
  std::vector<Choice> choices;
  std::vector<NamedCall> calls;
  std::vector<std::string> metrics;  // that every attacked cell measures
  std::string aim;                   // the metric that attacks lower; empty: the first of `metrics`

  const Method& method(const std::string& name) const;
  // The call that a name stands for; any other text is itself.
  std::string call(const std::string& name) const;
  // A number of the paper, as a share; `column` and `method` are the first fields of a row of published.csv, `dataset` is the
  // name of a column.
  std::optional<double> published(const std::string& column, const std::string& method, const std::string& dataset) const;

  std::map<std::string, double> numbers;  // of published.csv
};
// Read once for each scale.
const Paper& paper_named(const std::string& name, Scale scale);

struct Plan {
  MethodInfo info;
  std::string title, paper, analysis, source;  // source: the TOML text
  std::vector<std::string> metrics, together;  // together: options that are given together or not at all
  std::string choice, aim;
  std::vector<NamedCall> explainers, attacks, radii;  // of the rows; radii: name and epsilon
  std::vector<TablePlan> tables;
  std::vector<FigurePlan> figures;
  std::vector<Claim> claims;
  std::vector<Note> notes;
  std::vector<Factor> factors;
  std::map<std::string, std::string> record;  // for the results' settings
  std::vector<Setting> settings;              // at this scale, in order
  std::vector<Method> methods;
  std::vector<Setting> all_settings;  // bases, the paper's and the file's own, at any scale: what selectors may name
  std::vector<Method> all_methods;
  std::vector<std::string> selectors;  // that choose `settings`, or leave some out

  // The values of a factor; throws kUsage where the file has none of this name at this scale.
  const std::vector<std::string>& factor(const std::string& name) const;
};
// The plan at a scale; `options` are the words of the experiment's own options.
Plan read_plan(const std::string& text, const std::string& where, Scale scale, const Words& options = {});
// Throws kUsage, with the place of the mistake, for whatever can be known to be wrong before any work: names, words that no row
// has, calls that no registry takes. `options` has a word for each of the experiment's options.
void check_plan(const Plan& plan, const Paper& paper, const Words& options);

// "dataset: {name}" -> {"dataset", "{name}"}; without a colon the text is both.
std::pair<std::string, std::string> named(const std::string& text);
std::vector<std::string> split(const std::string& text, const std::string& separator);
// Whether a column or a metric is for this setting: of its kind, or with a field that is neither empty nor 0. "softplus": for
// networks with that activation.
bool applies(const std::string& only, const Setting& setting, const Method& method = {});
// What a row of a table can be called by: the setting's fields, and these.
Words row_words(const Setting& setting, const Method& method, const std::string& weights, const NamedCall& explainer,
                const NamedCall& attack, const NamedCall& radius);

}  // namespace holdfast::experiment::paper
