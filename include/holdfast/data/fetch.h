// Getting datasets: from the package that carries them when it is installed, otherwise from their official address.
// Files are kept as they are published; only zip archives whose members are named one by one are taken apart.
//
// HOLDFAST_MIRROR=http://host/path replaces the beginning of every address: https://a.org/b.gz is then asked for as
// http://host/path/a.org/b.gz.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/data/source.h"

namespace holdfast::data {

struct FetchOptions {
  std::string mirror = mirror_of_environment();
  int attempts = 4;        // of one file, when the network fails or the server is busy
  double first_pause = 1;  // seconds before the second attempt; doubled before each further one
  bool again = false;      // fetch_dataset: also what is there and complete

  static std::string mirror_of_environment();
};

// Downloads `url` to `target`, through `target`.part, which an interrupted download leaves behind. A part is continued when
// `sha256` is given: without a checksum nothing would tell two versions of a file apart. `sha256` lists the accepted
// checksums, lower-case; a file with another one is thrown away. Throws kFailure in one sentence: no such address, no
// network, wrong checksum, disk full.
void fetch_file(const std::string& url, const std::string& target, const std::vector<std::string>& sha256 = {},
                const FetchOptions& options = {});

struct FetchedFile {
  std::string path;
  std::string origin;  // where it was copied or downloaded from; empty when it was there before
};

// Gets the files of a source that are not there, or not whole, into DATA_FOLDER/source.folder.
std::vector<FetchedFile> fetch_dataset(const std::string& dataset, const Source& source, const std::string& data_folder,
                                       const FetchOptions& options = {});

}  // namespace holdfast::data
