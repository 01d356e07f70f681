// Where a dataset comes from, and where it lies on this machine. Needs no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::data {

// Where datasets are kept: HOLDFAST_DATA, else ~/.cache/holdfast.
std::string data_folder();

// How a dataset came to be here or can be got.
struct Source {
  struct File {
    // Below the dataset's folder. A `*` in the last part stands for several files: `image_*.jpg`.
    std::string path;
    // Known good contents, lower-case; any of them will do. Empty when the official file has no fixed bytes. Of several
    // files: the sha256 of the lines that `sha256sum FOLDER/PATTERN` prints in the data folder.
    std::vector<std::string> sha256 = {};
    std::string url = {};     // official address; empty when there is none
    std::string member = {};  // the url is a zip: which of its members becomes the file
    std::int64_t count = 1;   // how many files a path with `*` stands for
  };

  std::string folder;                                // below data_folder()
  std::vector<File> files;                           // what `data fetch` gets
  std::vector<std::vector<File>> alternatives = {};  // other sets of files, each of them enough, that are read as well
  std::string licence = {};
  std::string homepage = {};
  std::string package = {};                       // the Debian or Python package that carries it: "dataset-fashion-mnist"
  std::vector<std::string> package_folders = {};  // where that package may have put the files
};

// What of a source lies where: the first set of files that is complete.
struct Found {
  std::string folder;                    // empty when nothing is complete
  std::vector<Source::File> files = {};  // the set that was found
  explicit operator bool() const { return !folder.empty(); }
};

// Looks into DATA_FOLDER/source.folder, then into the package's folders. Presence only; `check_dataset` reads.
Found find_source(const Source& source, const std::string& data_folder);
// The folder of find_source; throws kInput with the command that gets the dataset.
std::string require_source(const std::string& dataset, const Source& source, const std::string& data_folder);
// The files in `folder` that a path stands for, sorted: one without `*`, none when it is not there.
std::vector<std::string> matching_files(const std::string& folder, const std::string& path);

// FOLDER/below for the places where Python packages lie: the active virtual environment, .venv in the working folder, the
// environment beside the program, the user's and the system's. Only those that exist.
std::vector<std::string> python_package_folders(const std::string& below);

}  // namespace holdfast::data
