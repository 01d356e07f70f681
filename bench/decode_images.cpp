// Loads and decodes image files (JPEG, PNG, PPM; gzipped idx arrays of them) several times and prints one JSON object: the
// seconds of each round, the number of bytes, and a checksum of them. decode_images.py runs it beside Pillow and NumPy.
//
//     decode_images ROUNDS LIST [FOLDER]      LIST: a text file with a path a line; FOLDER: pixels of each file go there as N.raw
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <zlib.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/idx.h"
#include "holdfast/core/image.h"
#include "holdfast/core/json.h"

namespace holdfast::bench {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (end > start) lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

// The pixels of an image file, or the elements of an array of images.
class Pixels {
 public:
  explicit Pixels(const std::string& file) {
    if (file.ends_with(".gz"))
      array_ = read_idx(file);
    else
      image_ = read_image(file, 3);
  }
  std::span<const std::byte> bytes() const {
    return array_.bytes.empty() ? std::as_bytes(std::span(image_.pixels)) : array_.bytes;
  }

 private:
  Image image_;
  RawArray array_;
};

double decode_all(const std::vector<std::string>& files, std::size_t& bytes) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& file : files) bytes += Pixels(file).bytes().size();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Apart from the timed rounds: what was decoded.
std::uint32_t checksum(const std::vector<std::string>& files, const std::string& folder) {
  uLong sum = crc32(0, nullptr, 0);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Pixels pixels(files[i]);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(pixels.bytes().data()), static_cast<uInt>(pixels.bytes().size()));
    if (!folder.empty()) write_atomic(fmt::format("{}/{}.raw", folder, i), pixels.bytes());
  }
  return static_cast<std::uint32_t>(sum);
}

void run(int rounds, const std::string& list, const std::string& folder) {
  const std::vector<std::string> files = lines_of(read_text(list));
  if (files.empty() || rounds < 1) usage_error("{}: no files, or no rounds", list);
  Json result{{"files", files.size()}, {"checksum", checksum(files, folder)}, {"seconds", Json::array()}};
  std::size_t bytes = 0;
  for (int round = 0; round < rounds; ++round) result["seconds"].push_back(decode_all(files, bytes));
  result["bytes"] = bytes / static_cast<std::size_t>(rounds);
  std::fputs(dump_json(result).c_str(), stdout);
}

}  // namespace
}  // namespace holdfast::bench

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: %s ROUNDS LIST [FOLDER]\n", arguments[0]);
    return holdfast::kExitBadInput;
  }
  try {
    holdfast::bench::run(std::atoi(arguments[1]), arguments[2], count > 3 ? arguments[3] : "");
    return holdfast::kExitDone;
  } catch (const holdfast::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
