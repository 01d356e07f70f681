#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <system_error>

#include "holdfast/core/file_stream.h"
#include "holdfast/core/memory.h"

namespace holdfast {
namespace mapped {

std::string reason(int code) {
  return std::generic_category().message(code);
}

// A file as it was when it was mapped.
struct MappedFile {
  std::string path;
  struct stat then {};
};

// All that is mapped, by where it begins.
struct Mappings {
  std::mutex mutex;
  std::map<void*, std::size_t> sizes;
  std::map<void*, MappedFile> files;
};
// Never destroyed: arrays in static storage may outlive it.
Mappings& mappings() {
  static Mappings& all = *new Mappings;
  return all;
}

// Python may start an audit in each of its threads.
class ScratchFolder {
 public:
  std::string get() {
    const std::lock_guard lock(mutex_);
    return folder_;
  }
  void set(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    folder_ = folder;
  }

 private:
  std::mutex mutex_;
  std::string folder_;
};
ScratchFolder& scratch_folder() {
  static ScratchFolder& folder = *new ScratchFolder;
  return folder;
}

// A file that nobody else can open and that leaves nothing behind.
int open_nameless(const std::string& folder) {
  const int nameless = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (nameless >= 0) return nameless;
  // Not every file system knows them.
  const std::string name = temporary_name(folder + "/holdfast");
  const int named = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

std::atomic<std::size_t> looked_at{0};
// The kernel maps what lies around a page too, up to 2 MiB: what is resident may be several times what was looked at.
constexpr std::size_t kMostLookedAt = std::size_t{8} << 20;

// Arrays that LargeAllocator mapped.
struct Arrays {
  std::mutex mutex;
  std::map<void*, MappedBytes> bytes;
};
Arrays& arrays() {
  static Arrays& all = *new Arrays;
  return all;
}

}  // namespace mapped

struct MappedBytes::Mapping {
  Mapping(int descriptor, std::size_t length, int protection, const std::string& what) : size(length) {
    begin = ::mmap(nullptr, size, protection, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    const int error = begin == MAP_FAILED ? errno : 0;
    ::close(descriptor);
    if (error != 0)
      failure("cannot map {} of {}: {}", memory_in_words(static_cast<std::int64_t>(size)), what, mapped::reason(error));
    const std::lock_guard lock(mapped::mappings().mutex);
    mapped::mappings().sizes.emplace(begin, size);
  }
  ~Mapping() {
    const std::lock_guard lock(mapped::mappings().mutex);
    mapped::mappings().sizes.erase(begin);
    mapped::mappings().files.erase(begin);
    ::munmap(begin, size);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void* begin = nullptr;
  std::size_t size = 0;
};

MappedBytes MappedBytes::of_file(const std::string& path) {
  const int descriptor = open_regular_file(path);
  struct stat status {};
  ::fstat(descriptor, &status);
  if (status.st_size == 0) {  // nothing to map; or a file of /proc, which are not for this
    ::close(descriptor);
    return {};
  }
  MappedBytes file(std::make_shared<Mapping>(descriptor, static_cast<std::size_t>(status.st_size), PROT_READ, path));
  const std::lock_guard lock(mapped::mappings().mutex);
  mapped::mappings().files.emplace(file.mapping_->begin, mapped::MappedFile{path, status});
  return file;
}

void check_mapped_files_unchanged() {
  const std::lock_guard lock(mapped::mappings().mutex);
  for (const auto& [begin, file] : mapped::mappings().files) {
    struct stat now {};
    const bool is_it = ::stat(file.path.c_str(), &now) == 0 && now.st_ino == file.then.st_ino && now.st_dev == file.then.st_dev;
    const timespec was = file.then.st_mtim, is = now.st_mtim;
    if (is_it && (was.tv_sec != is.tv_sec || was.tv_nsec != is.tv_nsec || file.then.st_size != now.st_size))
      input_error("{} was changed while it was read", file.path);
  }
}

MappedBytes MappedBytes::scratch(std::size_t size) {
  const std::string folder = mapped::scratch_folder().get();
  const std::string what = "scratch space in " + (folder.empty() ? "." : folder);
  const int descriptor = mapped::open_nameless(folder.empty() ? "." : folder);
  if (descriptor < 0) failure("cannot make {}: {}", what, mapped::reason(errno));
  // All of it now: a disk that is full later would end the program by a signal.
  if (const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size)); error != 0) {
    ::close(descriptor);
    failure("cannot get {} of {}: {}", memory_in_words(static_cast<std::int64_t>(size)), what, mapped::reason(error));
  }
  return MappedBytes(std::make_shared<Mapping>(descriptor, size, PROT_READ | PROT_WRITE, what));
}

std::span<std::byte> MappedBytes::bytes() const {
  if (!mapping_) return {};
  return {static_cast<std::byte*>(mapping_->begin), mapping_->size};
}

void set_scratch_folder(const std::string& folder) {
  mapped::scratch_folder().set(folder);
}

bool is_large(std::size_t bytes) {
  return bytes >= kLargeBytes && !mapped::scratch_folder().get().empty();
}

void release_pages() {
  mapped::looked_at = 0;
  const std::lock_guard lock(mapped::mappings().mutex);
  // The file keeps what was written: the mappings are shared.
  for (const auto& [begin, size] : mapped::mappings().sizes) ::madvise(begin, size, MADV_DONTNEED);
}

void count_looked_at(std::size_t bytes) {
  if ((mapped::looked_at += bytes) >= mapped::kMostLookedAt) release_pages();
}

void* allocate_large(std::size_t bytes) {
  if (!is_large(bytes)) {
    check_memory(bytes, "an array");
    return ::operator new(bytes);
  }
  MappedBytes array = MappedBytes::scratch(bytes);
  void* begin = array.bytes().data();
  const std::lock_guard lock(mapped::arrays().mutex);
  mapped::arrays().bytes.emplace(begin, std::move(array));
  return begin;
}

void free_large(void* begin) {
  {
    const std::lock_guard lock(mapped::arrays().mutex);
    if (mapped::arrays().bytes.erase(begin) > 0) return;
  }
  ::operator delete(begin);
}

}  // namespace holdfast
