#include "holdfast/core/files.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include <openssl/evp.h>

#include "holdfast/core/error.h"
#include "holdfast/core/file_stream.h"
#include "holdfast/core/memory.h"

namespace holdfast {
namespace {

std::string reason(int code) {
  return std::generic_category().message(code);
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

Descriptor open_to_read(const std::string& path) {
  return Descriptor(open_regular_file(path));
}

// Reads up to `size` bytes; gives 0 at the end of the file.
std::size_t read_some(const Descriptor& file, std::byte* into, std::size_t size, const std::string& path) {
  while (true) {
    const ssize_t got = ::read(file.get(), into, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) input_error("cannot read {}: {}", path, reason(errno));
  }
}

template <class Buffer>
Buffer read_whole(const std::string& path) {
  const Descriptor file = open_to_read(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) input_error("cannot read {}: {}", path, reason(errno));
  check_memory(static_cast<std::size_t>(status.st_size), path);
  // One byte more than the file is said to have shows its end without growing; files of /proc say nothing and grow.
  Buffer buffer(std::max<std::size_t>(static_cast<std::size_t>(status.st_size) + 1, 4096), {});
  std::size_t filled = 0;
  while (const std::size_t got =
             read_some(file, reinterpret_cast<std::byte*>(buffer.data()) + filled, buffer.size() - filled, path)) {
    filled += got;
    if (filled == buffer.size()) buffer.resize(2 * buffer.size());
  }
  buffer.resize(filled);
  return buffer;
}

// Returns 0 or the error.
int write_all(int descriptor, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t wrote = ::write(descriptor, data.data(), data.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    data = data.subspan(static_cast<std::size_t>(wrote));
  }
  return 0;
}

// What is mapped may be larger than the memory: it is gone through in pieces.
template <class Use>
void for_each_piece(std::span<const std::byte> data, const Use& use) {
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  for (; !data.empty(); data = data.subspan(std::min(kPiece, data.size()))) {
    const auto piece = data.first(std::min(kPiece, data.size()));
    use(piece);
    count_looked_at(piece.size());
  }
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Whether a name is one of ours: 16 hexadecimal digits between the last two dots.
bool is_temporary(const std::string& name) {
  constexpr std::size_t kDigits = 16, kEnding = 4;
  if (!name.ends_with(".tmp") || name.size() < kDigits + kEnding + 1) return false;
  const std::size_t begin = name.size() - kEnding - kDigits;
  return name[begin - 1] == '.' && name.find_first_not_of("0123456789abcdef", begin) == name.size() - kEnding;
}

// A file of a new name beside `path`, with a lock that says that its writer is still there; -1 and errno when it cannot be made.
int open_temporary(const std::string& path, std::string& name) {
  while (true) {
    name = temporary_name(path);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return file;
    while (::flock(file, LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat status {};
    if (::fstat(file, &status) == 0 && status.st_nlink > 0) return file;
    ::close(file);  // somebody who looked for left files came before the lock
  }
}

// The lock goes with the process that held it.
void remove_if_left(const std::string& temporary) {
  const Descriptor file(::open(temporary.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(temporary.c_str());
}

bool is_left_over(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_regular_file(ignored) && is_temporary(entry.path().filename().string());
}

// Looks at a folder when this process first writes to it.
void remove_left_once(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> looked_at;
  {
    const std::lock_guard lock(mutex);
    std::error_code error;
    if (!looked_at.insert(std::filesystem::absolute(folder, error).string()).second) return;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator place(folder, error), end; !error && place != end; place.increment(error)) {
    if (is_left_over(*place)) remove_if_left(place->path().string());
  }
}

// A renamed file survives a power cut only once its folder was synced. File systems that cannot sync a folder say so;
// the file itself is safe then, so that is no error.
void sync_folder(const std::string& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.valid()) ::fsync(descriptor.get());
}

// Computes the SHA-256, or another sum, of what is fed to it.
class Digest {
 public:
  explicit Digest(const EVP_MD* kind = EVP_sha256()) : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    HOLDFAST_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
  }
  void add(std::span<const std::byte> data) { HOLDFAST_CHECK(EVP_DigestUpdate(context_.get(), data.data(), data.size()) == 1); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    HOLDFAST_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

bool file_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

bool folder_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Bytes read_bytes(const std::string& path) {
  return read_whole<Bytes>(path);
}

std::string read_text(const std::string& path) {
  return read_whole<std::string>(path);
}

int open_regular_file(const std::string& path) {
  // Opening a pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) input_error("cannot read {}: {}", path, reason(errno));
  struct stat status {};
  const int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) return descriptor;
  ::close(descriptor);
  const bool folder = error == 0 && S_ISDIR(status.st_mode);
  input_error("cannot read {}: {}", path,
              folder       ? reason(EISDIR)
              : error != 0 ? reason(error)
                           : "it is a device or a pipe, not a file");
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  // A device or a pipe, such as /dev/stdout: there is nothing to replace.
  const bool replaces = ::stat(path_.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
  if (replaces) remove_left_once(folder_of(path_));
  descriptor_ = replaces ? open_temporary(path_, temporary_) : ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) {
  failure("cannot write {}: {}", path_, reason(error));
}

void AtomicFile::write(std::span<const std::byte> data) {
  for_each_piece(data, [&](std::span<const std::byte> piece) {
    if (const int error = write_all(descriptor_, piece)) fail(error);
  });
}
void AtomicFile::write(std::string_view text) {
  write(as_bytes(text));
}

void AtomicFile::finish() {
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
    return;
  }
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));  // and the lock with it, which kept the file until it had its name
  sync_folder(folder_of(path_));
}

void write_atomic(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  AtomicFile file(path);
  for (const std::span<const std::byte> part : parts) file.write(part);
  file.finish();
}

void write_atomic(const std::string& path, std::span<const std::byte> data) {
  const std::array parts{data};
  write_atomic(path, std::span<const std::span<const std::byte>>(parts));
}

void write_atomic(const std::string& path, std::string_view text) {
  write_atomic(path, as_bytes(text));
}

std::string temporary_name(const std::string& path) {
  std::random_device random;
  return fmt::format("{}.{:08x}{:08x}.tmp", path, random(), random());
}

void remove_temporaries(const std::string& folder, const std::vector<std::string>& but) {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator place(folder, error), end; !error && place != end; place.increment(error)) {
    if (std::find(but.begin(), but.end(), place->path().filename().string()) != but.end()) place.disable_recursion_pending();
    if (is_left_over(*place)) remove_if_left(place->path().string());
  }
}

void remove_folder(const std::string& path) {
  // Not std::filesystem::remove_all: torch 2.11 exports a copy of it that crashes.
  if (!folder_exists(path)) return;
  const auto remove_one = [](const char* name, const struct stat*, int, struct FTW*) { return std::remove(name); };
  if (nftw(path.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) {
    failure("cannot remove {}: {}", path, reason(errno));
  }
}

void make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) failure("cannot make the folder {}: {}", path, reason(error.value()));
  // create_directories is content with a file of that name.
  if (!folder_exists(path)) failure("cannot make the folder {}: {}", path, reason(ENOTDIR));
}

void check_writable_folder(const std::string& path) {
  // The nearest folder that is there must take a new entry. It is tried: permissions alone say nothing to root and on
  // read-only file systems.
  std::string folder = path.empty() ? "." : path;
  struct stat status {};
  while (::stat(folder.c_str(), &status) != 0) {
    if (errno != ENOENT) input_error("cannot write to the folder {}: {}", path, reason(errno));
    const std::string parent = folder_of(folder);
    if (parent == folder) break;
    folder = parent;
  }
  if (!S_ISDIR(status.st_mode)) input_error("cannot write to the folder {}: {} is not a folder", path, folder);
  remove_left_once(folder);
  std::string probe;
  const Descriptor tried(open_temporary((std::filesystem::path(folder) / "holdfast").string(), probe));
  if (!tried.valid()) input_error("cannot write to the folder {}: {}", path, reason(errno));
  ::unlink(probe.c_str());
}

Bytes read_maybe_gz(const std::string& path) {
  Bytes data = read_bytes(path);
  return path.ends_with(".gz") ? gunzip(data, path) : data;
}

std::string sha256_hex(std::span<const std::byte> data) {
  Digest hash;
  for_each_piece(data, [&](std::span<const std::byte> piece) { hash.add(piece); });
  return hash.hex();
}

namespace {

std::string digest_of_file(const std::string& path, const EVP_MD* kind) {
  const Descriptor file = open_to_read(path);
  Digest hash(kind);
  Bytes buffer(1 << 20);
  while (const std::size_t got = read_some(file, buffer.data(), buffer.size(), path)) hash.add(std::span(buffer).first(got));
  return hash.hex();
}

}  // namespace

std::string sha256_of_file(const std::string& path) {
  return digest_of_file(path, EVP_sha256());
}
std::string md5_of_file(const std::string& path) {
  return digest_of_file(path, EVP_md5());
}

}  // namespace holdfast
