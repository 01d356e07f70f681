#include "holdfast/data/fetch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include <curl/curl.h>
#include <fmt/format.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/log.h"
#include "holdfast/core/new_folders.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/zip.h"
#include "holdfast/data/verify.h"

namespace holdfast::data {
namespace {

namespace fs = std::filesystem;

constexpr long kConnectSeconds = 20;
constexpr long kStalledSeconds = 60;  // without a byte: the connection is taken for dead
constexpr long kRedirects = 10;

std::string reason(int code) {
  return std::generic_category().message(code);
}

// The half of a file that is here. Held by one process at a time.
class PartFile {
 public:
  explicit PartFile(std::string path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) failure("cannot write {}: {}", path_, reason(errno));
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      failure("{} is being downloaded by another process", path_);
    }
    size_ = ::lseek(descriptor_, 0, SEEK_END);
  }
  ~PartFile() { ::close(descriptor_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }

  void clear() {
    if (::ftruncate(descriptor_, 0) != 0) failure("cannot write {}: {}", path_, reason(errno));
    size_ = ::lseek(descriptor_, 0, SEEK_SET);
  }

  // Returns 0 or the error.
  int append(const char* data, std::size_t count) {
    while (count > 0) {
      const ssize_t wrote = ::write(descriptor_, data, count);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return errno;
      data += wrote;
      count -= static_cast<std::size_t>(wrote);
      size_ += wrote;
    }
    return 0;
  }

  void become(const std::string& target) {
    if (::fsync(descriptor_) != 0) failure("cannot write {}: {}", path_, reason(errno));
    std::error_code error;
    fs::rename(path_, target, error);
    if (error) failure("cannot write {}: {}", target, error.message());
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// What one request needs to know while its bytes arrive.
struct Transfer {
  CURL* curl = nullptr;
  PartFile* part = nullptr;
  std::int64_t asked_from = 0;  // first byte of the range that was asked for
  bool begun = false;
  int write_error = 0;
  std::unique_ptr<Progress> progress;
};

long status_of(CURL* curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

// The first bytes of a good answer: a server that ignores the range sends the file from its beginning.
void begin(Transfer& transfer) {
  transfer.begun = true;
  if (transfer.asked_from > 0 && status_of(transfer.curl) != 206) transfer.part->clear();
  curl_off_t length = -1;
  curl_easy_getinfo(transfer.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  const std::int64_t total = length < 0 ? 0 : transfer.part->size() + length;
  const std::string name = fs::path(transfer.part->path()).stem().string();  // without .part
  transfer.progress = std::make_unique<Progress>(name, total, "B");
  transfer.progress->set(transfer.part->size());
}

std::size_t on_data(char* data, std::size_t size, std::size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  if (status_of(transfer.curl) >= 300) return size * count;  // the page that comes with an error is not wanted
  if (!transfer.begun) begin(transfer);
  transfer.write_error = transfer.part->append(data, size * count);
  if (transfer.write_error != 0) return 0;
  transfer.progress->set(transfer.part->size());
  return size * count;
}

int on_progress(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return interrupted() ? 1 : 0;
}

std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> new_request(const std::string& url) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  HOLDFAST_CHECK(ready == CURLE_OK);
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  HOLDFAST_CHECK(curl);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_MAXREDIRS, kRedirects);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "holdfast");
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &on_progress);
  return curl;
}

bool may_pass(CURLcode result) {
  return result != CURLE_URL_MALFORMAT && result != CURLE_UNSUPPORTED_PROTOCOL && result != CURLE_TOO_MANY_REDIRECTS &&
         result != CURLE_PEER_FAILED_VERIFICATION;
}

// Says how a request ended when it did not end well.
struct RequestFailure {
  std::string what;
  bool is_temporary = false;  // worth another attempt
};

// Asks for what the part still lacks. Nothing is returned when the server has sent all of it.
std::optional<RequestFailure> request(const std::string& url, PartFile& part) {
  const auto curl = new_request(url);
  Transfer transfer{.curl = curl.get(), .part = &part, .asked_from = part.size()};
  char message[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &on_data);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &transfer);
  const std::string range = fmt::format("{}-", part.size());
  if (part.size() > 0) curl_easy_setopt(curl.get(), CURLOPT_RANGE, range.c_str());

  const CURLcode result = curl_easy_perform(curl.get());
  throw_if_interrupted();
  if (transfer.write_error != 0) failure("cannot write {}: {}", part.path(), reason(transfer.write_error));
  if (result != CURLE_OK) return RequestFailure{*message ? message : curl_easy_strerror(result), may_pass(result)};

  const long status = status_of(curl.get());
  if (status == 416 && transfer.asked_from > 0) return {};  // there is nothing after what we have; the checksum decides
  if (status >= 300) {
    return RequestFailure{fmt::format("the server answers {}{}", status, status == 404 ? " (not found)" : ""),
                          status >= 500 || status == 408 || status == 429};
  }
  if (!transfer.begun && transfer.asked_from == 0) part.clear();  // an empty file
  return {};
}

// Waits in short steps, so that Ctrl-C is heard.
void pause(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) {
    throw_if_interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void request_until_whole(const std::string& url, PartFile& part, const FetchOptions& options) {
  double seconds = options.first_pause;
  for (int attempt = 1;; ++attempt) {
    const auto failed = request(url, part);
    if (!failed) return;
    if (!failed->is_temporary || attempt >= options.attempts) {
      if (part.size() == 0) fs::remove(part.path());
      failure("cannot download {}: {}", url, failed->what);
    }
    log_info("{}: {}; trying again", url, failed->what);
    pause(seconds);
    seconds *= 2;
  }
}

bool accepted(const std::string& digest, const std::vector<std::string>& sha256) {
  return sha256.empty() || std::find(sha256.begin(), sha256.end(), digest) != sha256.end();
}

std::string mirrored(const std::string& url, const std::string& mirror) {
  if (mirror.empty()) return url;
  const std::size_t scheme = url.find("://");
  return mirror + "/" + (scheme == std::string::npos ? url : url.substr(scheme + 3));
}

std::string in_folder(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).string();
}

// The package's copy of a file, when it has one with known contents.
std::string packaged(const Source& source, const Source::File& file) {
  for (const std::string& folder : source.package_folders) {
    if (usable(check_file(folder, file, source.folder))) return in_folder(folder, file.path);
  }
  return {};
}

// Archives that were downloaded for their members, removed when all were taken out.
class Archives {
 public:
  Archives(std::string folder, const FetchOptions& options) : folder_(std::move(folder)), options_(options) {}
  ~Archives() {
    std::error_code ignored;
    for (const std::string& path : paths_) fs::remove(path, ignored);
  }
  Archives(const Archives&) = delete;
  Archives& operator=(const Archives&) = delete;

  void take(const Source::File& file, const std::string& target) {
    const std::string path = in_folder(folder_, fs::path(file.url).filename().string());
    if (std::find(paths_.begin(), paths_.end(), path) == paths_.end()) {
      fetch_file(file.url, path, {}, options_);
      paths_.push_back(path);
    }
    const Bytes data = extract(read_bytes(path), file.member, path);
    if (!accepted(sha256_hex(data), file.sha256)) {
      failure("{} in {} has sha256 {}, not {}", file.member, file.url, sha256_hex(data), fmt::join(file.sha256, " or "));
    }
    write_atomic(target, data);
  }

 private:
  std::string folder_;
  const FetchOptions& options_;
  std::vector<std::string> paths_;
};

std::string get(const std::string& dataset, const Source& source, const Source::File& file, const std::string& target,
                Archives& archives, const FetchOptions& options) {
  if (const std::string copy = packaged(source, file); !copy.empty()) {
    write_atomic(target, read_bytes(copy));
    return copy;
  }
  if (file.url.empty()) {
    input_error("dataset '{}': {} cannot be downloaded; {} says how to get it", dataset, file.path, source.homepage);
  }
  if (file.member.empty()) {
    fetch_file(file.url, target, file.sha256, options);
  } else {
    archives.take(file, target);
  }
  return file.url;
}

}  // namespace

std::string FetchOptions::mirror_of_environment() {
  const char* mirror = std::getenv("HOLDFAST_MIRROR");
  return mirror ? mirror : "";
}

void fetch_file(const std::string& url, const std::string& target, const std::vector<std::string>& sha256,
                const FetchOptions& options) {
  if (file_exists(target) && !sha256.empty() && accepted(sha256_of_file(target), sha256)) return;
  const NewFolders folders(fs::path(target).parent_path().string());
  const std::string address = mirrored(url, options.mirror);
  PartFile part(target + ".part");
  if (sha256.empty()) part.clear();
  bool continued = part.size() > 0;
  while (true) {
    request_until_whole(address, part, options);
    const std::string digest = sha256.empty() ? "" : digest_like(sha256.front(), part.path());
    if (accepted(digest, sha256)) break;
    if (!continued) {
      fs::remove(part.path());
      failure("{} has {} {}, not {}; it was thrown away", address, digest_name(digest), digest, fmt::join(sha256, " or "));
    }
    // The half that was here may have been of another file; the whole one may still be good.
    part.clear();
    continued = false;
  }
  part.become(target);
}

std::vector<FetchedFile> fetch_dataset(const std::string& dataset, const Source& source, const std::string& data_folder,
                                       const FetchOptions& options) {
  if (source.files.empty())
    usage_error("dataset '{}' has no files to fetch: it is generated, or read from a path you give", dataset);
  const std::string folder = in_folder(data_folder, source.folder);
  if (!options.again && check_dataset(source, data_folder).good() && find_source(source, data_folder).folder == folder) return {};
  const NewFolders folders(folder);
  Archives archives(folder, options);
  std::vector<FetchedFile> fetched;
  for (const Source::File& file : source.files) {
    const std::string target = in_folder(folder, file.path);
    const bool there = !options.again && usable(check_file(folder, file, source.folder));
    fetched.push_back({target, there ? "" : get(dataset, source, file, target, archives, options)});
    if (file.sha256.empty() && (!there || !file_exists(target + kPinEnding)))
      write_atomic(target + kPinEnding, sha256_of_file(target));
  }
  return fetched;
}

}  // namespace holdfast::data
