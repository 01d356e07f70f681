// ABIDE I: correlation between the activity of 111 Harvard-Oxford brain regions, one graph a subject. Edges are correlations in
// [-1, 1]; a region that was flat in a subject has edges of 0.
//
// Two questions about them: autism or not, which is hard (published accuracies of a single graph are near .7), and child (younger
// than 13) or adult (18 or older), which networks learn. Sites scanned subjects of different ages, so that a network may know a
// site instead of an age.
#include <charconv>

#include "graphs.h"
#include "holdfast/core/csv.h"
#include "holdfast/core/npy.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"

namespace holdfast::data::abide_ho111 {

constexpr std::int64_t kRegions = 111;
constexpr double kChildhoodEnds = 13, kAdult = 18;  // years
constexpr double kStoredAs = 10000;                 // correlations are kept as 16-bit whole numbers of ten-thousandths

const MethodInfo kInfo{
    .name = "abide_ho111",
    .summary = "brain networks: autism or control, or child or adult (ABIDE I, 111 Harvard-Oxford regions)",
    .citation = "Craddock et al., The Neuro Bureau Preprocessing Initiative, Frontiers in Neuroinformatics, 2013",
    .options = {{"question", "diagnosis", one_of({"diagnosis", "age"}),
                 "what the classes are: autism or control, or adults (18 or older) or children (younger than 13)"}},
    .notes =
        "871 graphs (566 of children and adults), 6,105 edges, split into five folds. A stand-in for the R2ET paper's 82-node BP "
        "graphs"};

class AbideHo111 final : public DatasetLoader {
 public:
  explicit AbideHo111(const Options& options) : asks_age_(options.word("question") == "age") {}

  Source source() const override {
    return {.folder = "brain_abide_ho111",
            .files = {{.path = "corr_upper_1e-4_int16.npy",
                       .sha256 = {"df675485098a535255939c3305eb249ec9df6e5f7972e38eb57e3be09bf58652"}},
                      {.path = "subjects.csv", .sha256 = {"fd4dca7e9c1e0c597e71693a59861411592e630ac816442af99f36b33460273f"}}},
            .licence = "CC BY-NC-SA 3.0",
            .homepage = "http://preprocessed-connectomes-project.org/abide/"};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source(kInfo.name, source(), context.folder);
    std::vector<std::int64_t> labels = asks_age_ ? ages(folder + "/subjects.csv") : diagnoses(folder + "/subjects.csv");
    const std::string path = folder + "/corr_upper_1e-4_int16.npy";
    RawArray stored = read_npy(path);
    const std::vector<std::int64_t> expected = {static_cast<std::int64_t>(labels.size()), Layout::graph(kRegions).inputs()};
    if (stored.type != ElementType::kInt16 || stored.shape != expected) {
      input_error("{}: {} of shape {}, expected int16 of shape {}", path, to_string(stored.type), to_string(stored.shape),
                  to_string(expected));
    }
    at::Tensor edges = to_tensor(std::move(stored)).to(at::kDouble).div_(kStoredAs).to(at::kFloat);
    if (asks_age_) edges = without_teenagers(edges, labels);
    const std::vector<std::string> classes =
        asks_age_ ? std::vector<std::string>{"child", "adult"} : std::vector<std::string>{"control", "autism"};
    Dataset dataset = graph_dataset(std::move(edges), kRegions, labels, classes, {-1, 1}, context);
    dataset.notes.emplace_back("a stand-in for the R2ET paper's BP graphs: 111 regions instead of 82");
    return dataset;
  }

 private:
  // 0: child, 1: adult, -1: neither.
  static std::vector<std::int64_t> ages(const std::string& path) {
    const CsvTable csv = read_csv(path);
    const std::size_t column = csv.column("AGE_AT_SCAN", path);
    std::vector<std::int64_t> labels;
    for (std::size_t row = 0; row < csv.rows.size(); ++row) {
      const std::string& text = csv.rows[row][column];
      double age = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), age);
      if (status != std::errc() || end != text.data() + text.size() || !(age > 0))
        input_error("{}:{}: AGE_AT_SCAN '{}' is not an age", path, csv.lines[row], text);
      labels.push_back(age < kChildhoodEnds ? 0 : age >= kAdult ? 1 : -1);
    }
    return labels;
  }

  // Leaves out the rows without a class.
  static at::Tensor without_teenagers(const at::Tensor& edges, std::vector<std::int64_t>& labels) {
    std::vector<std::int64_t> rows, kept;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0) continue;
      rows.push_back(static_cast<std::int64_t>(i));
      kept.push_back(labels[i]);
    }
    labels = std::move(kept);
    return edges.index_select(0, at::tensor(rows, at::kLong));
  }

  static std::vector<std::int64_t> diagnoses(const std::string& path) {
    const CsvTable csv = read_csv(path);
    const std::size_t column = csv.column("DX_GROUP", path);
    std::vector<std::int64_t> labels;
    for (std::size_t row = 0; row < csv.rows.size(); ++row) {
      const std::string& group = csv.rows[row][column];
      if (group != "1" && group != "2")
        input_error("{}:{}: DX_GROUP '{}' is neither 1 (autism) nor 2 (control)", path, csv.lines[row], group);
      labels.push_back(group == "1" ? 1 : 0);
    }
    return labels;
  }

  bool asks_age_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<AbideHo111>(kInfo);
}

}  // namespace holdfast::data::abide_ho111
