// The folder of an audit as reports and comparisons read it: manifest.json, results.json, samples.csv and the samples.json of its
// first row, each behind a NUL byte. The arrays are those of two samples with three features.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../../src/report/run_data.h"
#include "holdfast/core/npy.h"
#include "holdfast/experiment/compare_runs.h"

#include "fuzz.h"

namespace {

using namespace holdfast;

// Goes with the process.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") + std::string("/holdfast-fuzz-XXXXXX");
    require(::mkdtemp(name.data()) != nullptr);
    path = name;
    std::filesystem::create_directories(path + "/arrays/0000");
    const RawArray rows{.type = ElementType::kFloat32, .shape = {2, 3}, .bytes = std::vector<std::byte>(24, std::byte{60})};
    for (const char* array : {"inputs", "perturbed", "original_maps", "perturbed_maps"})
      write_npy(path + "/arrays/0000/" + array + ".npy", rows);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

}  // namespace

void holdfast::fuzz_run_folder(std::span<const std::byte> input) {
  static const Folder folder;
  std::string_view text = as_text(input);
  for (const char* name : {"manifest.json", "results.json", "samples.csv", "arrays/0000/samples.json"}) {
    const std::size_t end = text.find('\0');
    std::ofstream(folder.path + "/" + name, std::ios::binary) << text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  try {
    report::PicturePool pool;
    (void)report::run_data(folder.path, pool);
    (void)experiment::compare_runs({folder.path, folder.path});
  } catch (const Json::exception& error) {
    input_error("{}", error.what());  // what main makes of it: wrong_json_sentence
  }
}
