#include "holdfast/core/files.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <zlib.h>

#include "holdfast/core/file_stream.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Bytes gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes result(deflateBound(&stream, text.size()) + 32);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string varied_text(std::size_t size) {
  std::string text;
  for (std::uint32_t state = 1; text.size() < size; state = state * 1664525U + 1013904223U)
    text += static_cast<char>('a' + (state >> 28));
  return text;
}

// While it lives, no file of this process may grow above `bytes`; what goes over is refused as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

// Root may write anywhere; while this lives the process is somebody else.
class NotRoot {
 public:
  NotRoot() : was_root_(geteuid() == 0) {
    if (was_root_ && seteuid(65534) != 0) ADD_FAILURE() << "cannot stop being root";
  }
  ~NotRoot() {
    if (was_root_ && seteuid(0) != 0) ADD_FAILURE() << "cannot be root again";
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  bool was_root_;
};

TEST(Read, GivesTheFilesBytes) {
  const TempFolder folder;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 100'000U}) {
    const std::string text = varied_text(size);
    write_atomic(folder / "a", text);
    EXPECT_EQ(read_text(folder / "a"), text);
    EXPECT_EQ(as_text(read_bytes(folder / "a")), text);
  }
}

TEST(Read, TakesFilesThatDoNotSayTheirSize) {
  EXPECT_NE(read_text("/proc/self/status").find("VmSize"), std::string::npos);
}

TEST(Read, SaysWhyNot) {
  const TempFolder folder;
  EXPECT_ERROR(read_bytes(folder / "gone"), kInput, "cannot read " + (folder / "gone") + ": No such file or directory");
  EXPECT_ERROR(read_text(folder.path()), kInput, "Is a directory");
  EXPECT_ERROR(sha256_of_file(folder.path()), kInput, "Is a directory");
}

TEST(Exists, TellsFilesAndFoldersApart) {
  const TempFolder folder;
  write_atomic(folder / "a", "x");
  EXPECT_TRUE(file_exists(folder / "a"));
  EXPECT_FALSE(folder_exists(folder / "a"));
  EXPECT_FALSE(file_exists(folder.path()));
  EXPECT_TRUE(folder_exists(folder.path()));
  EXPECT_FALSE(file_exists(folder / "gone"));
  EXPECT_FALSE(folder_exists(folder / "gone"));
}

TEST(WriteAtomic, ReplacesAndLeavesNothingElse) {
  const TempFolder folder;
  write_atomic(folder / "a", "first, and longer");
  write_atomic(folder / "a", "second");
  EXPECT_EQ(read_text(folder / "a"), "second");
  EXPECT_EQ(entries_of(folder.path()), std::vector<std::string>{"a"});
}

TEST(WriteAtomic, PutsPartsOneBehindTheOther) {
  const TempFolder folder;
  const std::vector<std::span<const std::byte>> parts{as_bytes("one "), as_bytes(""), as_bytes("two")};
  write_atomic(folder / "a", parts);
  EXPECT_EQ(read_text(folder / "a"), "one two");
}

TEST(WriteAtomic, FilesAreAsReadableAsTheUmaskSays) {
  const TempFolder folder;
  const mode_t old = umask(027);
  write_atomic(folder / "a", "x");
  umask(old);
  struct stat status {};
  ASSERT_EQ(stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(WriteAtomic, AFullDiskKeepsTheOldFileAndLeavesNothingBehind) {
  const TempFolder folder;
  write_atomic(folder / "a", "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_ERROR(write_atomic(folder / "a", std::string(5000, 'x')), kFailure,
                 "cannot write " + (folder / "a") + ": File too large");
  }
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(entries_of(folder.path()), std::vector<std::string>{"a"});
}

TEST(WriteAtomic, DevicesAreWrittenDirectly) {
  EXPECT_NO_THROW(write_atomic("/dev/null", "x"));
  EXPECT_TRUE(file_exists("/dev/null"));
  EXPECT_ERROR(write_atomic("/dev/full", "x"), kFailure, "cannot write /dev/full: No space left on device");
}

// Files that a killed process left have nobody who holds their lock.
TEST(WriteAtomic, RemovesWhatKilledWritersLeftAndNothingElse) {
  const TempFolder folder;
  const std::string left = folder / "results.json.0123456789abcdef.tmp", own = folder / "notes.tmp";
  for (const std::string& path : {left, own}) std::ofstream(path) << "half";
  write_atomic(folder / "other.json", "{}");
  EXPECT_FALSE(file_exists(left));
  EXPECT_TRUE(file_exists(own)) << "a user's file";
}

TEST(RemoveTemporaries, LeavesTheFilesOfWritersThatAreStillThere) {
  const TempFolder folder;
  make_folders(folder / "below");
  const std::string left = folder / "below/tile.0123456789abcdef.tmp";
  std::ofstream(left) << "half";
  AtomicFile living(folder / "below/maps.npy");
  living.write("whole");
  remove_temporaries(folder.path());
  EXPECT_FALSE(file_exists(left));
  living.finish();
  EXPECT_EQ(read_text(folder / "below/maps.npy"), "whole");
}

TEST(WriteAtomic, SaysWhyNot) {
  const TempFolder folder;
  EXPECT_ERROR(write_atomic(folder / "no/where", "x"), kFailure, "No such file or directory");
  EXPECT_ERROR(write_atomic(folder.path(), "x"), kFailure, "cannot write " + folder.path());
  // Refused to root as well.
  EXPECT_ERROR(write_atomic("/proc/holdfast", "x"), kFailure, "cannot write /proc/holdfast");
  EXPECT_TRUE(entries_of(folder.path()).empty());
}

TEST(WriteAtomic, AReaderNeverSeesHalfAFile) {
  const TempFolder folder;
  const std::string a(200'000, 'a'), b(150'000, 'b');
  write_atomic(folder / "x", a);
  std::jthread writer([&] {
    for (int i = 0; i < 20; ++i) write_atomic(folder / "x", i % 2 == 0 ? b : a);
  });
  for (int i = 0; i < 50; ++i) {
    const std::string seen = read_text(folder / "x");
    EXPECT_TRUE(seen == a || seen == b) << seen.size();
  }
}

TEST(MakeFolders, MakesParentsAndIsContentWithWhatIsThere) {
  const TempFolder folder;
  make_folders(folder / "a/b/c");
  make_folders(folder / "a/b/c");
  EXPECT_TRUE(folder_exists(folder / "a/b/c"));
  write_atomic(folder / "file", "x");
  EXPECT_ERROR(make_folders(folder / "file"), kFailure, "cannot make the folder " + (folder / "file"));
  EXPECT_ERROR(make_folders(folder / "file/below"), kFailure, "Not a directory");
}

TEST(CheckWritableFolder, ChecksTheNearestFolderThatIsThereAndLeavesNoTrace) {
  const TempFolder folder;
  check_writable_folder(folder.path());
  check_writable_folder(folder / "not/yet/there");
  check_writable_folder("not_yet_there");
  EXPECT_TRUE(entries_of(folder.path()).empty());
  EXPECT_FALSE(folder_exists("not_yet_there"));

  write_atomic(folder / "file", "x");
  EXPECT_ERROR(check_writable_folder(folder / "file"), kInput, "is not a folder");
  EXPECT_ERROR(check_writable_folder(folder / "file/below"), kInput, "Not a directory");
  EXPECT_ERROR(check_writable_folder(folder / std::string(1000, 'x')), kInput, "File name too long");
  // Refused to root as well.
  EXPECT_ERROR(check_writable_folder("/proc/holdfast"), kInput, "cannot write to the folder /proc/holdfast: ");
}

TEST(CheckWritableFolder, ReadOnlyFoldersAreRefused) {
  const TempFolder folder;
  make_folders(folder / "locked");
  chmod(folder.path().c_str(), 0755);
  chmod((folder / "locked").c_str(), 0555);
  const NotRoot user;
  EXPECT_ERROR(check_writable_folder(folder / "locked/run"), kInput, "Permission denied");
  EXPECT_ERROR(write_atomic(folder / "locked/a", "x"), kFailure, "Permission denied");
}

TEST(Gunzip, IsTheInverseOfGzip) {
  for (const std::size_t size : {0U, 1U, 65536U, 65537U, 1'000'000U}) {
    const std::string text = varied_text(size);
    EXPECT_EQ(as_text(gunzip(gzip(text), "x")), text);
  }
}

TEST(Gunzip, ReadsSeveralMembers) {
  Bytes both = gzip("one ");
  const Bytes second = gzip("two");
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(as_text(gunzip(both, "x")), "one two");
}

TEST(Gunzip, EveryTruncationIsSeen) {
  const Bytes whole = gzip(varied_text(300));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_ERROR(gunzip(std::span(whole).first(size), "a.gz"), kInput, "a.gz: the gzip data is truncated");
  }
}

TEST(Gunzip, DamageIsSeen) {
  Bytes damaged = gzip(varied_text(300));
  damaged[damaged.size() - 6] ^= std::byte{1};  // the checksum
  EXPECT_ERROR(gunzip(damaged, "a.gz"), kInput, "a.gz: the gzip data is damaged");
  EXPECT_ERROR(gunzip(as_bytes("no gzip at all"), "a.gz"), kInput, "damaged");
  Bytes trailing = gzip("x");
  trailing.push_back(std::byte{'y'});
  trailing.push_back(std::byte{'z'});
  EXPECT_ERROR(gunzip(trailing, "a.gz"), kInput, "damaged");
}

TEST(Gunzip, GrowthIsLimited) {
  const Bytes bomb = gzip(std::string(1'000'000, '\0'));
  EXPECT_LT(bomb.size(), 2000U);
  EXPECT_EQ(gunzip(bomb, "x", 1'000'000).size(), 1'000'000U);
  EXPECT_ERROR(gunzip(bomb, "x", 999'999), kInput, "x: decompresses to more than 999999 bytes");
  EXPECT_ERROR(gunzip(bomb, "x", 0), kInput, "more than 0 bytes");
}

TEST(ReadMaybeGz, GoesByTheName) {
  const TempFolder folder;
  write_atomic(folder / "a.gz", gzip("text"));
  write_atomic(folder / "a.txt", "text");
  EXPECT_EQ(as_text(read_maybe_gz(folder / "a.gz")), "text");
  EXPECT_EQ(as_text(read_maybe_gz(folder / "a.txt")), "text");
}

// FIPS 180-2, appendix B.
TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(sha256_hex(as_bytes("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const std::string million(1'000'000, 'a');
  EXPECT_EQ(sha256_hex(as_bytes(million)), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  const TempFolder folder;
  write_atomic(folder / "million", million);
  EXPECT_EQ(sha256_of_file(folder / "million"), sha256_hex(as_bytes(million)));
}

TEST(Sha256, OfAFileLongerThanTheBuffer) {
  const TempFolder folder;
  const std::string text = varied_text(3'000'001);
  write_atomic(folder / "a", text);
  EXPECT_EQ(sha256_of_file(folder / "a"), sha256_hex(as_bytes(text)));
}

TEST(RemoveFolder, TakesAllThatIsBelowAndFollowsNoLinks) {
  const TempFolder folder;
  make_folders(folder / "gone/below");
  write_atomic(folder / "gone/below/file", std::string_view("x"));
  write_atomic(folder / "kept", std::string_view("x"));
  std::filesystem::create_symlink(folder / "kept", folder / "gone/link");
  remove_folder(folder / "gone");
  EXPECT_FALSE(folder_exists(folder / "gone"));
  EXPECT_TRUE(file_exists(folder / "kept"));
  remove_folder(folder / "gone");  // nothing to do
}

}  // namespace
}  // namespace holdfast
