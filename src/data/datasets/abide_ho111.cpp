// ABIDE I: correlation between the activity of 111 Harvard-Oxford brain regions, one graph a subject; autism or not. Edges are
// correlations in [-1, 1]; a region that was flat in a subject has edges of 0.

#include "graphs.h"
#include "holdfast/core/csv.h"
#include "holdfast/core/npy.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"

namespace holdfast::data::abide_ho111 {

constexpr std::int64_t kRegions = 111;
constexpr double kStoredAs = 10000;  // correlations are kept as 16-bit whole numbers of ten-thousandths

const MethodInfo kInfo{
    .name = "abide_ho111",
    .summary = "brain networks: autism or control (ABIDE I, 111 Harvard-Oxford regions)",
    .citation = "Craddock et al., The Neuro Bureau Preprocessing Initiative, Frontiers in Neuroinformatics, 2013",
    .notes = "871 graphs, 6,105 edges, split into five folds. A stand-in for the R2ET paper's 82-node BP graphs"};

class AbideHo111 final : public DatasetLoader {
 public:
  explicit AbideHo111(const Options&) {}

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
    const std::vector<std::int64_t> labels = diagnoses(folder + "/subjects.csv");
    const std::string path = folder + "/corr_upper_1e-4_int16.npy";
    RawArray stored = read_npy(path);
    const std::vector<std::int64_t> expected = {static_cast<std::int64_t>(labels.size()), Layout::graph(kRegions).inputs()};
    if (stored.type != ElementType::kInt16 || stored.shape != expected) {
      input_error("{}: {} of shape {}, expected int16 of shape {}", path, to_string(stored.type), to_string(stored.shape),
                  to_string(expected));
    }
    at::Tensor edges = to_tensor(std::move(stored)).to(at::kDouble).div_(kStoredAs).to(at::kFloat);
    Dataset dataset = graph_dataset(std::move(edges), kRegions, labels, {"control", "autism"}, {-1, 1}, context);
    dataset.notes.emplace_back("a stand-in for the R2ET paper's BP graphs: 111 regions instead of 82");
    return dataset;
  }

 private:
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
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<AbideHo111>(kInfo);
}

}  // namespace holdfast::data::abide_ho111
