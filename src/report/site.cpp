// The site of the papers' results: a page with all verdicts, a page for each paper, and every table as CSV.
#include <filesystem>

#include <fmt/format.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json_error.h"
#include "holdfast/report/experiment.h"
#include "kept_results.h"
#include "page.h"

namespace holdfast::report {
namespace {

// "images and graphs" -> "images_and_graphs"
std::string file_name(std::string text) {
  for (char& letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return text;
}

Json write_paper(const std::string& folder, const std::string& out) {
  const std::string paper = folder_name(folder);
  Json runs = Json::array();
  make_folders(out + "/csv/" + paper);
  for (const std::string& name : kept_experiments(folder)) {
    Json results = read_json(folder + "/" + name + ".json");
    for (const Json& table : results.at("tables"))
      write_atomic(fmt::format("{}/csv/{}/{}_{}.csv", out, paper, name, file_name(table.at("name"))), table_csv(table));
    // The pictures are in the run's own report: their arrays are not kept.
    for (Json& figure : results.at("figures")) figure["panels"] = Json::array();
    runs.push_back({{"folder", name},
                    {"manifest", read_json(folder + "/" + name + ".manifest.json")},
                    {"results", results},
                    {"panels", Json::object()}});
  }
  // What the claims' words mean, and what the numbers were made with.
  const std::string own = folder + "/words.md", words = file_exists(own) ? read_text(own) : "";
  write_page(out + "/" + paper + ".html",
             {{"page", "paper"}, {"title", paper}, {"pictures", Json::array()}, {"runs", runs}, {"words", words}});
  Json entry{{"name", paper}, {"page", paper + ".html"}, {"words", words}, {"verdicts", read_json(folder + "/verdicts.json")}};
  if (!runs.empty()) entry["title"] = runs[0].at("results").at("paper");
  return entry;
}

}  // namespace

void write_site(const std::vector<std::string>& folders, const std::string& out) {
  make_folders(out);
  Json papers = Json::array();
  for (const std::string& folder : folders) {
    try {
      papers.push_back(write_paper(folder, out));
    } catch (const Json::exception& error) {
      input_error("{}: a file is not of an experiment of this version: {}", folder, json_reason(error));
    }
  }
  write_page(out + "/index.html",
             {{"page", "site"}, {"title", "What became of the papers' claims"}, {"pictures", Json::array()}, {"papers", papers}});
}

}  // namespace holdfast::report
