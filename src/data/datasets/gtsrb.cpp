// GTSRB, German traffic signs in 43 classes. Training images are frames of tracks: one physical sign filmed while the car
// drives by, so frames of a track are nearly the same image and a split must not separate them. Names say what they are:
//   .../CCCCC/TTTTT_FFFFF.ppm          training: class, track, frame
//   .../NNNNN.ppm, GT-final_test.csv   test, with its labels
// Read from the official three zip archives, from a .tar.gz, or from an unpacked tree of either.
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/file_tree.h"
#include "images.h"

namespace holdfast::data::gtsrb {

constexpr const char* kSubset = "gtsrb32_subset.tar.gz";
constexpr const char* kTrainArchive = "GTSRB_Final_Training_Images.zip";
constexpr const char* kTestArchive = "GTSRB_Final_Test_Images.zip";
constexpr const char* kLabelArchive = "GTSRB_Final_Test_GT.zip";
constexpr const char* kTestLabels = "GT-final_test.csv";

const std::vector<std::string> kSigns = {"speed limit 20",
                                         "speed limit 30",
                                         "speed limit 50",
                                         "speed limit 60",
                                         "speed limit 70",
                                         "speed limit 80",
                                         "end of speed limit 80",
                                         "speed limit 100",
                                         "speed limit 120",
                                         "no passing",
                                         "no passing for vehicles over 3.5 t",
                                         "right of way at the next crossing",
                                         "priority road",
                                         "yield",
                                         "stop",
                                         "no vehicles",
                                         "no vehicles over 3.5 t",
                                         "no entry",
                                         "danger",
                                         "curve to the left",
                                         "curve to the right",
                                         "double curve",
                                         "bumpy road",
                                         "slippery road",
                                         "road narrows on the right",
                                         "road works",
                                         "traffic signals",
                                         "pedestrians",
                                         "children crossing",
                                         "bicycles crossing",
                                         "ice or snow",
                                         "wild animals crossing",
                                         "end of all limits",
                                         "turn right ahead",
                                         "turn left ahead",
                                         "ahead only",
                                         "straight or right",
                                         "straight or left",
                                         "keep right",
                                         "keep left",
                                         "roundabout",
                                         "end of no passing",
                                         "end of no passing for vehicles over 3.5 t"};

struct Sign {
  const FileTree* tree = nullptr;
  std::size_t index = 0;
  std::int64_t label = 0;
  std::int64_t track = 0;  // training: different for every track of every class
};

// Gives the number that `text` is when it has five digits.
std::optional<std::int64_t> five_digits(std::string_view text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (text.size() != 5 || !std::all_of(text.begin(), text.end(), is_digit)) return {};
  return std::stoll(std::string(text));
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}  // npos + 1 is 0

// A training image by its name, CCCCC/TTTTT_FFFFF.ppm at the end of it.
std::optional<Sign> as_training(const FileTree& tree, std::size_t index) {
  const std::string_view path = tree.name(index), name = last_part(path);
  if (name.size() != 15 || name[5] != '_' || !name.ends_with(".ppm") || path.size() == name.size()) return {};
  const auto label = five_digits(last_part(path.substr(0, path.size() - name.size() - 1)));
  const auto track = five_digits(name.substr(0, 5));
  if (!label || !track || !five_digits(name.substr(6, 5))) return {};
  return Sign{&tree, index, *label, *label * 100000 + *track};
}

bool is_test(std::string_view path) {
  const std::string_view name = last_part(path);
  return name.size() == 9 && name.ends_with(".ppm") && five_digits(name.substr(0, 5));
}

// Gives the labels of test images by file name.
std::map<std::string, std::int64_t, std::less<>> parse_labels(const Bytes& file, const std::string& where) {
  const CsvTable table = parse_csv(as_text(file), {.separator = ';'}, where);
  const std::size_t name = table.column("Filename", where), label = table.column("ClassId", where);
  std::map<std::string, std::int64_t, std::less<>> labels;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& text = table.rows[i][label];
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    if (text.empty() || text.size() > 2 || !std::all_of(text.begin(), text.end(), is_digit)) {
      input_error("{}:{}: ClassId '{}' is not a class from 0 to 42", where, table.lines[i], text);
    }
    labels[table.rows[i][name]] = std::stoll(text);
  }
  return labels;
}

// Sorts what lies in the folder into its two parts.
struct Signs {
  std::vector<Sign> train, test;
};

Signs sort_out(const std::vector<std::unique_ptr<FileTree>>& trees, const std::string& folder) {
  Signs pictures;
  std::map<std::string, std::int64_t, std::less<>> labels;
  for (const auto& tree : trees) {
    for (std::size_t i = 0; i < tree->size(); ++i) {
      if (const auto training = as_training(*tree, i)) {
        pictures.train.push_back(*training);
      } else if (is_test(tree->name(i))) {
        pictures.test.push_back({tree.get(), i});
      } else if (last_part(tree->name(i)) == kTestLabels) {
        labels = parse_labels(tree->read(i), tree->where(i));
      }
    }
  }
  if (pictures.train.empty()) input_error("{} has no training images CCCCC/TTTTT_FFFFF.ppm", folder);
  for (Sign& picture : pictures.test) {
    const auto found = labels.find(last_part(picture.tree->name(picture.index)));
    if (found == labels.end()) input_error("{}: {} has no row in {}", folder, picture.tree->name(picture.index), kTestLabels);
    picture.label = found->second;
  }
  return pictures;
}

class Gtsrb final : public DatasetLoader {
 public:
  explicit Gtsrb(const Options& options) : size_(options.integer("size")) {}

  Source source() const override {
    const std::string address = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/";
    const auto official = [&](const char* name, const char* md5) {
      return Source::File{.path = name, .sha256 = {md5}, .url = address + name};
    };
    return {.folder = "gtsrb",
            .files = {official(kTrainArchive, "f33fd80ac59bff73c82d25ab499e03a3"),
                      official(kTestArchive, "c7e4e6327067d32654124b0fe9e82185"),
                      official(kLabelArchive, "fe31e9c9270bbcd7b84b7f21a9d9d9e5")},
            .alternatives = {{{kSubset, {"0152961280b36ad5aff70288e2ee823e594b7d0ba691415b230ac657a8468428"}}},
                             {{"train/00000/*.ppm"}, {"test/*.ppm"}, {std::string("test/") + kTestLabels}},
                             {{"GTSRB/Final_Training/Images/00000/*.ppm"}, {"GTSRB/Final_Test/Images/*.ppm"}, {kTestLabels}},
                             {{"GTSRB/Final_Training/Images/00000/*.ppm"},
                              {"GTSRB/Final_Test/Images/*.ppm"},
                              {std::string("GTSRB/Final_Test/Images/") + kTestLabels}}},
            .licence = "not stated",
            .homepage = "https://benchmark.ini.rub.de/gtsrb_dataset.html"};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source("gtsrb", source(), context.folder);
    const auto trees = open_trees(folder);
    const Signs parts = sort_out(trees, folder);
    std::vector<Sign> pictures = parts.train;
    pictures.insert(pictures.end(), parts.test.begin(), parts.test.end());
    const std::int64_t train_count = std::ssize(parts.train), test_count = std::ssize(parts.test);

    std::vector<std::int64_t> labels, tracks;
    for (const Sign& picture : pictures) labels.push_back(picture.label);
    for (const Sign& picture : parts.train) tracks.push_back(picture.track);
    Dataset dataset =
        image_dataset(decode(pictures), labels, official_split_by_group(tracks, labels, test_count, context.seed), kSigns);
    dataset.notes.push_back(
        fmt::format("{} of the 39209 training images, {} of the 12630 test images; validation is split off by track", train_count,
                    test_count));
    return dataset;
  }

 private:
  static std::vector<std::unique_ptr<FileTree>> open_trees(const std::string& folder) {
    std::vector<std::unique_ptr<FileTree>> trees;
    for (const char* archive : {kTrainArchive, kTestArchive, kLabelArchive, kSubset}) {
      const std::string path = folder + "/" + archive;
      if (archive == kSubset && !trees.empty()) break;
      if (file_exists(path)) trees.push_back(open_tree(path));
    }
    if (trees.empty()) trees.push_back(open_tree(folder));
    return trees;
  }

  at::Tensor decode(const std::vector<Sign>& pictures) const {
    const auto picture = [&](std::int64_t i) -> const Sign& { return pictures[static_cast<std::size_t>(i)]; };
    const auto where = [&](std::int64_t i) { return picture(i).tree->where(picture(i).index); };
    return decode_images(
        std::ssize(pictures), 3, size_, size_,
        [&](std::int64_t i) {
          Image image = decode_image(picture(i).tree->read(picture(i).index), where(i), 3);
          return image.height == size_ && image.width == size_ ? image : resize(image, size_, size_);
        },
        where);
  }

  std::int64_t size_;
};

const MethodInfo kInfo{
    .name = "gtsrb",
    .summary = "German traffic signs, RGB, 43 classes, up to 39209 + 12630 images",
    .citation =
        "Stallkamp et al., \"Man vs. computer: Benchmarking machine learning algorithms for traffic sign recognition\", 2012",
    .options = {{"size", 32, between(8, 256), "images are scaled to this many pixels in height and width"}},
    .notes = "Frames of one track show one sign: validation is split off by track, so that none is in two parts."};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Gtsrb>(kInfo);
}

}  // namespace holdfast::data::gtsrb
