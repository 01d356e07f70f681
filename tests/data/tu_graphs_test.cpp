#include "holdfast/data/tu_graphs.h"

#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::data {
namespace {

// Two graphs: nodes 1-3 in a path, nodes 4-5 joined.
class TuFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    write("A", "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n");
    write("graph_indicator", "1\n1\n1\n2\n2\n");
    write("graph_labels", "-1\n1\n");
    write("node_labels", "0\n7\n2\n7\n0\n");
  }
  void write(const std::string& part, const std::string& text) { write_atomic(folder_ / ("X_" + part + ".txt"), text); }
  TuGraphs read() const { return read_tu_graphs(folder_.path(), "X"); }

  TempFolder folder_;
};

TEST_F(TuFiles, AreReadAsWritten) {
  const TuGraphs graphs = read();
  EXPECT_EQ(graphs.graph_labels, std::vector<std::int64_t>({-1, 1}));
  EXPECT_EQ(graphs.node_labels, std::vector<std::int64_t>({0, 7, 2, 7, 0}));
  EXPECT_EQ(graphs.node_graph, std::vector<std::int64_t>({0, 0, 0, 1, 1}));
  ASSERT_EQ(graphs.edges.size(), 6U);
  EXPECT_EQ(graphs.edges[2], (std::pair<std::int64_t, std::int64_t>(1, 2)));
}

TEST_F(TuFiles, WrongOnesAreNamedWithTheirLine) {
  write("A", "1, 2\n2, 6\n");
  EXPECT_ERROR(read(), kInput, "X_A.txt:2: 6 is not in 1 to 5");
  write("A", "1, 2\n3, 4\n");
  EXPECT_ERROR(read(), kInput, "the edge 3, 4 joins two graphs");
  write("A", "1, 2\n3, x\n");
  EXPECT_ERROR(read(), kInput, "X_A.txt:2: 'x' is not a whole number");
  write("A", "1\n2\n");
  EXPECT_ERROR(read(), kInput, "X_A.txt:1: 1 fields, expected 2");
  write("graph_indicator", "1\n1\n1\n2\n");
  EXPECT_ERROR(read(), kInput, "has 4 nodes, but");
  write("graph_indicator", "1\n1\n1\n2\n3\n");
  EXPECT_ERROR(read(), kInput, "graph_indicator.txt:5: 3 is not in 1 to 2");
}

TEST_F(TuFiles, NodeNamesComeFromTheReadme) {
  write_atomic(folder_ / "readme.txt",
               "README\n\n=== Node Label Conversion === \n\nComponent 0:\n\t0\tn_1\n\t1\tn_187\n\n=== References ===\n3 x\n");
  const auto names = read_tu_node_names(folder_ / "readme.txt");
  EXPECT_EQ(names, (std::map<std::int64_t, std::string>{{0, "n_1"}, {1, "n_187"}}));
  write_atomic(folder_ / "readme.txt", "README\n");
  EXPECT_ERROR(read_tu_node_names(folder_ / "readme.txt"), kInput, "has no table of node labels");
}

}  // namespace
}  // namespace holdfast::data
