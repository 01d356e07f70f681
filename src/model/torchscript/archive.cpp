#include "archive.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "pickle.h"

namespace holdfast::model::torchscript {
namespace {

// Torch's reader does not tell capitals from small letters.
std::string as_compared(std::string text) {
  for (char& letter : text) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return text;
}

// The folder in which all records lie is the first one's.
void strip_folder(std::vector<ZipMember>& members, const std::string& path) {
  if (members.empty()) input_error("{} is not a TorchScript file: the archive is empty", path);
  const std::string folder = members.front().name.substr(0, members.front().name.find('/') + 1);
  if (folder.empty()) input_error("{} is not a TorchScript file: record {} lies in no folder", path, members.front().name);
  for (ZipMember& member : members) {
    if (!member.name.starts_with(folder))
      input_error("{} is not a TorchScript file: record {} lies outside the folder {}", path, member.name, folder);
    member.name = as_compared(member.name.substr(folder.size()));
  }
}

}  // namespace

Archive Archive::open(const std::string& path) {
  if (folder_exists(path)) input_error("cannot read {}: it is a folder", path);
  return check(read_bytes(path), path);
}

Archive Archive::check(Bytes bytes, const std::string& path) {
  Archive archive;
  archive.path_ = path;
  archive.bytes_ = std::move(bytes);
  const std::string_view text = as_text(archive.bytes_);
  if (!text.starts_with("PK\x03\x04") || text.rfind("PK\x05\x06") == std::string_view::npos) {
    input_error("{} is not a TorchScript file, or is truncated: it is no zip archive", path);
  }
  archive.members_ = check_zip(archive.bytes_, path);
  strip_folder(archive.members_, path);
  archive.check_names();
  archive.check_pickles();
  return archive;
}

const ZipMember* Archive::find(std::string_view name) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const ZipMember& member) { return member.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

std::vector<std::pair<std::string, std::string>> Archive::sources() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const ZipMember& member : members_) {
    if (member.name.starts_with("code/") && member.name.ends_with(".py"))
      result.emplace_back(member.name, as_text(extract(bytes_, member, path_)));
  }
  return result;
}

void Archive::check_names() const {
  if (!has("data.pkl") || !has("constants.pkl")) {
    if (has("data.pkl"))
      input_error("{} holds weights but no TorchScript code; save the model with torch.jit.script(model).save(...)", path_);
    input_error("{} is not a TorchScript file: it has no record data.pkl", path_);
  }
  // The form before torch 1.2 has a reader of its own, which believes everything.
  if (has("model.json")) input_error("{} was written by a torch before 1.2; save it again with a newer one", path_);
}

void Archive::check_pickles() const {
  std::vector<std::pair<std::string, std::uint64_t>> sizes;
  for (const ZipMember& member : members_) sizes.emplace_back(member.name, member.size);
  std::sort(sizes.begin(), sizes.end());
  const auto size_of = [&](const std::string& name) -> std::optional<std::uint64_t> {
    const auto found = std::lower_bound(sizes.begin(), sizes.end(), std::pair(name, std::uint64_t{0}));
    return found == sizes.end() || found->first != name ? std::nullopt : std::optional(found->second);
  };
  for (const ZipMember& member : members_) {
    const std::string where = path_ + ": " + member.name;
    const auto check_as = [&](PickleKind kind, const std::string& folder) {
      check_pickle(extract(bytes_, member, path_), where, kind,
                   [&](const std::string& key) { return size_of(folder + as_compared(key)); });
    };
    if (member.name == "data.pkl") check_as(PickleKind::kValues, "data/");
    if (member.name == "constants.pkl") check_as(PickleKind::kValues, "constants/");
    if (member.name == "traced_inputs.pkl") check_as(PickleKind::kShapes, "traced_inputs/");
    if (member.name.starts_with("code/") && member.name.ends_with(".debug_pkl")) check_as(PickleKind::kPlainData, "");
  }
}

}  // namespace holdfast::model::torchscript
