// A folder of PNG, JPEG and PPM images, one folder for each class: PATH/cat/1.png. When PATH holds `train` and `test`,
// each of them holds the folders of classes, and what is in `test` is the test set.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "holdfast/core/files.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/file_tree.h"
#include "images.h"

namespace holdfast::data::image_folder {

bool is_image_name(const std::string& name) {
  std::string ending = name.substr(std::min(name.size(), name.rfind('.')));
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::set<std::string> endings = {".png", ".jpg", ".jpeg", ".ppm", ".pgm"};
  return endings.contains(ending);
}

struct Picture {
  std::size_t index = 0;  // in the tree
  std::string label;      // the class's folder
  bool test = false;
};

// The first folder of a path, which loses it; empty when there is none.
std::string take_folder(std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos) return {};
  std::string folder = path.substr(0, slash);
  path.erase(0, slash + 1);
  return folder;
}

std::vector<Picture> find_pictures(const FileTree& tree, bool has_parts) {
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::string rest = tree.name(i);
    if (!is_image_name(rest)) continue;
    const std::string part = has_parts ? take_folder(rest) : "train";
    const std::string label = take_folder(rest);
    if (!label.empty() && (part == "train" || part == "test")) pictures.push_back({i, label, part == "test"});
  }
  // Names in order put "test" before "train"; a dataset has its test set last.
  std::stable_partition(pictures.begin(), pictures.end(), [](const Picture& picture) { return !picture.test; });
  return pictures;
}

// Numbers every class in the order of names.
std::map<std::string, std::int64_t> number_classes(const std::vector<Picture>& pictures) {
  std::map<std::string, std::int64_t> numbers;
  for (const Picture& picture : pictures) numbers[picture.label] = 0;
  std::int64_t next = 0;
  for (auto& [name, number] : numbers) number = next++;
  return numbers;
}

class ImageFolder final : public DatasetLoader {
 public:
  explicit ImageFolder(const Options& options)
      : path_(options.word("path")), size_(options.integer("size")), channels_(options.word("colour") == "grey" ? 1 : 3) {}

  std::string found_at(const LoadContext&) const override { return folder_exists(path_) || file_exists(path_) ? path_ : ""; }

  Dataset load(const LoadContext& context) const override {
    if (path_.empty()) usage_error("image_folder needs a path: image_folder(path=FOLDER)");
    const auto tree = open_tree(path_);
    const bool has_parts = has_folder(*tree, "train") && has_folder(*tree, "test");
    const std::vector<Picture> pictures = find_pictures(*tree, has_parts);
    if (pictures.empty()) input_error("{} has no PNG, JPEG or PPM images in folders, one folder for each class", path_);
    const auto numbers = number_classes(pictures);
    std::vector<std::int64_t> labels;
    for (const Picture& picture : pictures) labels.push_back(numbers.at(picture.label));
    std::vector<std::string> classes;
    for (const auto& [name, number] : numbers) classes.push_back(name);

    const auto train_count =
        std::count_if(pictures.begin(), pictures.end(), [](const Picture& picture) { return !picture.test; });
    Split split = has_parts ? official_split(labels, train_count, context.seed) : stratified_split(labels, context.seed);
    return image_dataset(decode(*tree, pictures), labels, std::move(split), std::move(classes));
  }

 private:
  static bool has_folder(const FileTree& tree, const std::string& folder) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      if (tree.name(i).starts_with(folder + "/")) return true;
    }
    return false;
  }

  Image read(const FileTree& tree, std::size_t index) const {
    return decode_image(tree.read(index), tree.where(index), channels_);
  }

  at::Tensor decode(const FileTree& tree, const std::vector<Picture>& pictures) const {
    const auto index = [&](std::int64_t i) { return pictures[static_cast<std::size_t>(i)].index; };
    const Image first = read(tree, index(0));
    const std::int64_t height = size_ > 0 ? size_ : first.height, width = size_ > 0 ? size_ : first.width;
    const auto where = [&](std::int64_t i) {
      return size_ > 0 ? tree.where(index(i)) : fmt::format("image_folder without size=N: {}", tree.where(index(i)));
    };
    return decode_images(
        std::ssize(pictures), channels_, height, width,
        [&](std::int64_t i) { return size_ > 0 ? cropped(read(tree, index(i)), size_) : read(tree, index(i)); }, where);
  }

  std::string path_;
  std::int64_t size_, channels_;
};

const MethodInfo kInfo{
    .name = "image_folder",
    .summary = "your own PNG, JPEG or PPM images: a folder or archive with one folder for each class",
    .options = {
        {"path", "", anything(), "the folder, .tar.gz or .zip that holds a folder for each class, or train/ and test/ that do"},
        {"size", 0, at_least(0),
         "the shorter side is scaled to this many pixels, then the middle square is taken; 0: as they are"},
        {"colour", "rgb", one_of({"rgb", "grey"}), "three channels or one"}}};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<ImageFolder>(kInfo);
}

}  // namespace holdfast::data::image_folder
