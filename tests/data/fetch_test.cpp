// Downloads, against a server on loopback.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>

#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/log.h"
#include "holdfast/data/fetch.h"
#include "holdfast/data/verify.h"
#include "support/errors.h"
#include "support/loopback_server.h"
#include "support/outside.h"
#include "support/temp_folder.h"

namespace holdfast::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Fetch : public ::testing::Test {
 protected:
  // One server for all tests; each starts with an empty log.
  static void SetUpTestSuite() {
    shared = new TempFolder;
    make_folders(served());
    server = new LoopbackServer(served());
  }
  static void TearDownTestSuite() {
    delete server;
    delete shared;
  }
  void SetUp() override {
    server->forget();
    for (unsigned i = 0; i < 300000; ++i) contents += static_cast<char>(i * 7919 >> 5);
    sum = sha256_hex(as_bytes(contents));
    write_atomic(served() + "/file.bin", contents);
    set_log_level(LogLevel::kSilent);
  }
  void TearDown() override {
    set_log_level(LogLevel::kInfo);
    clear_interrupt();
  }

  static std::string served() { return *shared / "served"; }
  static std::string url(const std::string& path) { return server->address() + "/" + path; }
  bool nothing_left() const { return !file_exists(target) && !file_exists(target + ".part"); }
  // The beginning of a file that an earlier download left.
  void leave_part(std::string_view text) const {
    make_folders(folder / "here");
    write_atomic(target + ".part", text);
  }

  static TempFolder* shared;
  static LoopbackServer* server;
  TempFolder folder;
  std::string target = folder / "here/file.bin";
  std::string contents, sum;
  FetchOptions options{.mirror = "", .attempts = 3, .first_pause = 0.01};
};
TempFolder* Fetch::shared = nullptr;
LoopbackServer* Fetch::server = nullptr;

TEST_F(Fetch, AFileArrivesWhole) {
  fetch_file(url("good/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
  EXPECT_FALSE(file_exists(target + ".part"));
}

TEST_F(Fetch, AnyOfTheKnownChecksumsWillDo) {
  fetch_file(url("good/file.bin"), target, {std::string(64, '0'), sum}, options);
  EXPECT_EQ(read_text(target), contents);
}

TEST_F(Fetch, AHalfFileIsContinuedWhereItEnds) {
  leave_part(std::string_view(contents).substr(0, 123456));
  fetch_file(url("good/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
  EXPECT_THAT(server->requests(), ElementsAre("/good/file.bin bytes=123456-"));
}

TEST_F(Fetch, AServerThatIgnoresTheRangeGivesTheWholeFile) {
  leave_part(std::string_view(contents).substr(0, 123456));
  fetch_file(url("plain/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
}

TEST_F(Fetch, APartThatIsWholeNeedsNoMoreThanItsChecksum) {
  leave_part(contents);
  fetch_file(url("good/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
}

TEST_F(Fetch, APartOfAnotherFileIsThrownAwayAndTheFileFetchedFromItsBeginning) {
  leave_part(std::string(5000, '?'));
  fetch_file(url("good/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
  EXPECT_THAT(server->requests(), ElementsAre("/good/file.bin bytes=5000-", "/good/file.bin "));
}

TEST_F(Fetch, WithoutAChecksumAPartIsNotTrusted) {
  leave_part(std::string(5000, '?'));
  fetch_file(url("good/file.bin"), target, {}, options);
  EXPECT_EQ(read_text(target), contents);
}

TEST_F(Fetch, AConnectionThatBreaksOffIsTakenUpAgain) {
  options.attempts = 40;  // every answer brings half of what is left
  options.first_pause = 0;
  fetch_file(url("flaky/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
  EXPECT_EQ(server->requests()[1], "/flaky/file.bin bytes=150000-");
}

TEST_F(Fetch, ABrokenDownloadLeavesItsPartForTheNextOne) {
  options.attempts = 1;
  EXPECT_ERROR(fetch_file(url("flaky/file.bin"), target, {sum}, options), kFailure, "cannot download");
  EXPECT_EQ(read_text(target + ".part"), contents.substr(0, 150000));
}

TEST_F(Fetch, ABusyServerIsAskedAgain) {
  fetch_file(url("busy/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
}

TEST_F(Fetch, AWrongChecksumLeavesNothingBehind) {
  EXPECT_ERROR(fetch_file(url("good/file.bin"), target, {std::string(64, '0')}, options), kFailure, "has sha256 " + sum);
  EXPECT_TRUE(nothing_left());
}

TEST_F(Fetch, AnAddressThatDoesNotExistIsNamedAndNotTriedAgain) {
  EXPECT_ERROR(fetch_file(url("good/nothing.bin"), target, {sum}, options), kFailure,
               "cannot download " + url("good/nothing.bin") + ": the server answers 404 (not found)");
  EXPECT_TRUE(nothing_left());
  EXPECT_EQ(server->requests().size(), 1u);
}

TEST_F(Fetch, AnErrorPageDoesNotHarmThePart) {
  leave_part(std::string_view(contents).substr(0, 100));
  EXPECT_ERROR(fetch_file(url("good/nothing.bin"), target, {sum}, options), kFailure, "404");
  EXPECT_EQ(read_text(target + ".part"), contents.substr(0, 100));
}

TEST_F(Fetch, ARefusedConnectionIsOneSentence) {
  // Port 1 is reserved and nothing listens on it.
  EXPECT_ERROR(fetch_file("http://127.0.0.1:1/file.bin", target, {sum}, options), kFailure,
               "cannot download http://127.0.0.1:1/file.bin: ");
  EXPECT_TRUE(nothing_left());
}

TEST_F(Fetch, AnEmptyFileIsAFile) {
  write_atomic(served() + "/empty", "");
  fetch_file(url("good/empty"), target, {sha256_hex({})}, options);
  EXPECT_EQ(read_text(target), "");
}

TEST_F(Fetch, AFileThatIsThereIsNotAskedFor) {
  make_folders(folder / "here");
  write_atomic(target, contents);
  fetch_file(url("good/file.bin"), target, {sum}, options);
  EXPECT_THAT(server->requests(), IsEmpty());
}

TEST_F(Fetch, AFileWithWrongBytesIsReplaced) {
  make_folders(folder / "here");
  write_atomic(target, "damaged");
  fetch_file(url("good/file.bin"), target, {sum}, options);
  EXPECT_EQ(read_text(target), contents);
}

TEST_F(Fetch, CtrlCStopsIt) {
  request_interrupt();
  EXPECT_ERROR(fetch_file(url("good/file.bin"), target, {sum}, options), kInterrupted, "");
  EXPECT_FALSE(file_exists(target));
}

TEST_F(Fetch, ADownloadOfTheSameFileByAnotherProcessIsNotDisturbed) {
  leave_part("x");
  const int other = open((target + ".part").c_str(), O_RDONLY | O_CLOEXEC);  // locks belong to whoever opened the file
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_ERROR(fetch_file(url("good/file.bin"), target, {sum}, options), kFailure, "being downloaded by another process");
  EXPECT_EQ(read_text(target + ".part"), "x");
  close(other);
}

TEST_F(Fetch, OnlyWebAddressesAreAskedFor) {
  EXPECT_ERROR(fetch_file("file://" + served() + "/file.bin", target, {sum}, options), kFailure, "cannot download file://");
}

// A dataset of two files, as the functions over datasets see it.
class FetchDataset : public Fetch {
 protected:
  void SetUp() override {
    Fetch::SetUp();
    make_folders(served() + "/example.org/data");
    write_atomic(served() + "/example.org/data/file.bin", contents);
    write_atomic(served() + "/example.org/data/notes.txt", "notes");
    options.mirror = server->address();
    source = {.folder = "toy",
              .files = {{.path = "file.bin", .sha256 = {sum}, .url = "https://example.org/data/file.bin"},
                        {.path = "notes.txt", .url = "https://example.org/data/notes.txt"}},
              .homepage = "https://example.org"};
  }

  TempFolder data;
  Source source;
};

TEST_F(FetchDataset, FilesComeFromTheMirrorUnderTheirOfficialNames) {
  EXPECT_FALSE(find_source(source, data.path()));
  fetch_dataset("toy", source, data.path(), options);
  EXPECT_EQ(read_text(data / "toy/file.bin"), contents);
  EXPECT_EQ(read_text(data / "toy/notes.txt"), "notes");
  EXPECT_EQ(require_source("toy", source, data.path()), data / "toy");
}

TEST_F(FetchDataset, WhatIsThereIsLeftAlone) {
  make_folders(data / "toy");
  write_atomic(data / "toy/file.bin", contents);
  const auto fetched = fetch_dataset("toy", source, data.path(), options);
  ASSERT_EQ(fetched.size(), 2u);
  EXPECT_EQ(fetched[0].origin, "");
  EXPECT_EQ(fetched[1].origin, "https://example.org/data/notes.txt");
  EXPECT_THAT(server->requests(), ElementsAre("/example.org/data/notes.txt "));
  EXPECT_THAT(fetch_dataset("toy", source, data.path(), options), IsEmpty());
}

TEST_F(FetchDataset, AnInstalledPackageComesFirst) {
  make_folders(folder / "package");
  write_atomic(folder / "package/file.bin", contents);
  write_atomic(folder / "package/notes.txt", "packaged");
  source.package = "toy-data";
  source.package_folders = {folder / "absent", folder / "package"};
  EXPECT_EQ(find_source(source, data.path()).folder, folder / "package");
  fetch_dataset("toy", source, data.path(), options);
  EXPECT_EQ(read_text(data / "toy/notes.txt"), "packaged");
  EXPECT_THAT(server->requests(), IsEmpty());
}

TEST_F(FetchDataset, APackageWithOtherBytesIsNotTaken) {
  make_folders(folder / "package");
  write_atomic(folder / "package/file.bin", "something else");
  source.package_folders = {folder / "package"};
  fetch_dataset("toy", source, data.path(), options);
  EXPECT_EQ(read_text(data / "toy/file.bin"), contents);
}

TEST_F(FetchDataset, AnotherFormThatIsCompleteIsEnough) {
  source.alternatives = {{{.path = "part_*.txt", .count = 2}}};
  make_folders(data / "toy");
  write_atomic(data / "toy/part_1.txt", "1");
  EXPECT_FALSE(find_source(source, data.path()));
  write_atomic(data / "toy/part_2.txt", "2");
  EXPECT_TRUE(find_source(source, data.path()));
  EXPECT_THAT(fetch_dataset("toy", source, data.path(), options), IsEmpty());
  EXPECT_THAT(server->requests(), IsEmpty());
}

TEST_F(FetchDataset, MembersOfAZipBecomeFilesAndTheZipGoes) {
  ASSERT_EQ(run_python("python3", "tests/support/make_archives.py", served()), 0);
  const std::string address = server->address() + "/good/nested.zip";
  source.files = {
      {.path = "short.txt", .sha256 = {sha256_hex(as_bytes("short\n"))}, .url = address, .member = "inner/plain.zip!short.txt"},
      {.path = "empty", .url = address, .member = "inner/plain.zip!folder/empty"}};
  options.mirror = "";
  fetch_dataset("toy", source, data.path(), options);
  EXPECT_EQ(read_text(data / "toy/short.txt"), "short\n");
  EXPECT_EQ(read_text(data / "toy/empty"), "");
  EXPECT_FALSE(file_exists(data / "toy/nested.zip"));
  EXPECT_EQ(server->requests().size(), 1u);
}

TEST_F(FetchDataset, AMissingDatasetNamesTheCommandThatGetsIt) {
  EXPECT_ERROR(require_source("toy", source, data.path()), kInput, "get it with: holdfast data fetch toy");
}

TEST_F(FetchDataset, WithoutANetworkNoFolderIsLeft) {
  options.mirror = "http://127.0.0.1:1";
  EXPECT_ERROR(fetch_dataset("toy", source, data / "new", options), kFailure, "cannot download");
  EXPECT_FALSE(folder_exists(data / "new"));
}

TEST_F(FetchDataset, WhatCannotBeDownloadedSaysWhere) {
  source.files[0].url.clear();
  source.files[1].url.clear();
  EXPECT_ERROR(fetch_dataset("toy", source, data.path(), options), kInput, "https://example.org says how to get it");
  EXPECT_ERROR(require_source("toy", source, data.path()), kInput, "cannot be downloaded; https://example.org");
  EXPECT_ERROR(fetch_dataset("toy", Source{}, data.path(), options), kUsage, "no files to fetch");
}

TEST_F(FetchDataset, CheckNamesWhatIsMissingAndWhatIsWrong) {
  const auto states = [&] {
    std::vector<FileCheck::State> result;
    for (const FileCheck& file : check_dataset(source, data.path()).files) result.push_back(file.state);
    return result;
  };
  using State = FileCheck::State;
  EXPECT_THAT(states(), ElementsAre(State::kMissing, State::kMissing));
  make_folders(data / "toy");
  write_atomic(data / "toy/file.bin", contents);
  EXPECT_THAT(states(), ElementsAre(State::kGood, State::kMissing));
  EXPECT_FALSE(check_dataset(source, data.path()).good());
  write_atomic(data / "toy/notes.txt", "any");
  EXPECT_THAT(states(), ElementsAre(State::kGood, State::kUnverified));
  EXPECT_TRUE(check_dataset(source, data.path()).good());
  write_atomic(data / "toy/file.bin", "x" + contents);
  EXPECT_THAT(states(), ElementsAre(State::kWrong, State::kUnverified));
  EXPECT_THAT(check_dataset(source, data.path()).files[0].message, ::testing::HasSubstr("file.bin has sha256 "));
}

TEST_F(FetchDataset, SeveralFilesAreSummedAsSha256sumPrintsThem) {
  make_folders(data / "toy");
  write_atomic(data / "toy/part_2.txt", "2");
  write_atomic(data / "toy/part_1.txt", "1");
  const std::string command = "cd '" + data.path() + "' && sha256sum toy/part_*.txt > sums";
  ASSERT_EQ(std::system(command.c_str()), 0);
  source.files = {{.path = "part_*.txt", .sha256 = {sha256_of_file(data / "sums")}, .count = 2}};
  EXPECT_EQ(check_dataset(source, data.path()).files[0].state, FileCheck::State::kGood);
  write_atomic(data / "toy/part_1.txt", "changed");
  EXPECT_EQ(check_dataset(source, data.path()).files[0].state, FileCheck::State::kWrong);
}

}  // namespace
}  // namespace holdfast::data
