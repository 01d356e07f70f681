// Archives that are not trusted: every part that a second reader could understand in another way is refused. Reading what Python
// writes is tested in tests/data/archive_test.cpp.
#include "holdfast/core/zip.h"

#include <functional>
#include <optional>

#include <zlib.h>

#include "holdfast/core/files.h"
#include "support/errors.h"

namespace holdfast {
namespace {

// One record, and what is wrong with it.
struct Record {
  std::string name, contents;
  bool has_descriptor = false;
  std::optional<std::string> local_name;        // in the local header
  std::optional<std::uint32_t> crc;             // wherever it is written
  std::optional<std::uint32_t> local_size;      // in the local header
  std::optional<std::uint32_t> directory_size;  // in the directory
  std::optional<std::size_t> same_place_as;     // no record of its own: the directory points to that of another
};

class ArchiveWriter {
 public:
  std::string directory_extra, before, comment;
  bool zip64 = false;
  std::uint64_t claimed_more = 0;  // added to the directory's size in the zip64 end record

  Bytes write(const std::vector<Record>& records) {
    text_ = before;
    std::string directory;
    std::vector<std::size_t> places;
    for (const Record& record : records) {
      places.push_back(record.same_place_as ? places[*record.same_place_as] : text_.size());
      if (!record.same_place_as) add_record(record);
      directory += entry(record, places.back());
    }
    const std::size_t begin = text_.size();
    text_ += directory;
    if (zip64) add_zip64_end(records.size(), begin, directory.size());
    put(0x06054b50, 4);
    put(0, 4);
    for (int i = 0; i < 2; ++i) put(zip64 ? 0xffff : records.size(), 2);
    put(zip64 ? 0xffffffff : directory.size(), 4);
    put(zip64 ? 0xffffffff : begin, 4);
    put(comment.size(), 2);
    text_ += comment;
    return {as_bytes(text_).begin(), as_bytes(text_).end()};
  }

 private:
  static std::string little(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 255);
    return text;
  }
  static std::uint32_t crc_of(const Record& record) {
    if (record.crc) return *record.crc;
    return static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(record.contents.data()), static_cast<uInt>(record.contents.size())));
  }
  void put(std::uint64_t value, int bytes) { text_ += little(value, bytes); }

  void add_record(const Record& record) {
    const std::string name = record.local_name.value_or(record.name);
    put(0x04034b50, 4);
    put(20, 2);
    put(record.has_descriptor ? 8 : 0, 2);
    put(0, 6);  // stored, no time
    const bool later = record.has_descriptor;
    const std::size_t size = record.local_size.value_or(record.contents.size());
    put(later ? 0 : crc_of(record), 4);
    put(later ? 0 : size, 4);
    put(later ? 0 : size, 4);
    put(name.size(), 2);
    put(0, 2);
    text_ += name + record.contents;
    if (later) text_ += little(0x08074b50, 4) + little(crc_of(record), 4) + little(size, 4) + little(size, 4);
  }
  std::string entry(const Record& record, std::size_t place) const {
    const std::uint64_t size = record.directory_size.value_or(record.contents.size());
    std::string extra = directory_extra;
    if (zip64) extra += little(1, 2) + little(24, 2) + little(size, 8) + little(size, 8) + little(place, 8);
    return little(0x02014b50, 4) + little(20, 2) + little(20, 2) + little(record.has_descriptor ? 8 : 0, 2) + little(0, 6) +
           little(crc_of(record), 4) + little(zip64 ? 0xffffffff : size, 4) + little(zip64 ? 0xffffffff : size, 4) +
           little(record.name.size(), 2) + little(extra.size(), 2) + little(0, 10) + little(zip64 ? 0xffffffff : place, 4) +
           record.name + extra;
  }
  void add_zip64_end(std::size_t count, std::size_t begin, std::size_t size) {
    const std::size_t place = text_.size();
    text_ += little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(count, 8) +
             little(count, 8) + little(size + claimed_more, 8) + little(begin, 8);
    text_ += little(0x07064b50, 4) + little(0, 4) + little(place, 8) + little(1, 4);
  }

  std::string text_;
};

const std::vector<Record> kTwo{{.name = "m/data.pkl", .contents = "hello"}, {.name = "m/data/0", .contents = "0123456789"}};

std::vector<Record> two_with(const std::function<void(Record&)>& change) {
  std::vector<Record> records = kTwo;
  change(records[1]);
  return records;
}

TEST(CheckedZip, SoundArchivesGiveTheirRecords) {
  for (const bool zip64 : {false, true}) {
    for (const bool descriptor : {false, true}) {
      ArchiveWriter writer;
      writer.zip64 = zip64;
      const Bytes archive = writer.write(two_with([&](Record& record) { record.has_descriptor = descriptor; }));
      const std::vector<ZipMember> members = check_zip(archive, "a.pt");
      ASSERT_EQ(members.size(), 2u);
      EXPECT_EQ(members[1].name, "m/data/0");
      EXPECT_EQ(as_text(packed_bytes(archive, members[1], "a.pt")), "0123456789");
      EXPECT_EQ(as_text(extract(archive, members[0], "a.pt")), "hello");
    }
  }
  EXPECT_TRUE(check_zip(ArchiveWriter().write({}), "empty.pt").empty());
}

TEST(CheckedZip, WhatTwoReadersCouldUnderstandDifferentlyIsRefused) {
  const auto write = [](const std::vector<Record>& records) { return ArchiveWriter().write(records); };
  EXPECT_ERROR(check_zip(write(two_with([](Record& r) { r.crc = 7; })), "a.pt"), kInput,
               "a.pt: damaged zip archive: m/data/0 has a wrong checksum");
  EXPECT_ERROR(check_zip(write(two_with([](Record& r) { r.local_name = "m/data/1"; })), "a.pt"), kInput,
               "the header of m/data/0 differs");
  EXPECT_ERROR(check_zip(write(two_with([](Record& r) { r.local_size = 3; })), "a.pt"), kInput, "the header of m/data/0 differs");
  EXPECT_ERROR(check_zip(write(two_with([](Record& r) { r.directory_size = 4; })), "a.pt"), kInput,
               "the header of m/data/0 differs");
  EXPECT_ERROR(check_zip(write(two_with([](Record& r) { r.has_descriptor = true, r.directory_size = 4; })), "a.pt"), kInput,
               "what follows m/data/0 does not repeat the checksum and sizes");
  EXPECT_ERROR(check_zip(write(two_with([](Record& r) { r.directory_size = 4000; })), "a.pt"), kInput,
               "m/data/0 should hold 4000 bytes");
  EXPECT_ERROR(check_zip(write({kTwo[0], {.name = "m/DATA.pkl", .contents = "other"}}), "a.pt"), kInput,
               "the name m/DATA.pkl is there twice");
  EXPECT_ERROR(check_zip(write({kTwo[0], {.name = "m/data\n0", .contents = "other"}}), "a.pt"), kInput,
               "the name of record 2 has a control character");
}

TEST(CheckedZip, RecordsThatShareBytesAreRefused) {
  std::vector<Record> records = kTwo;
  records.push_back({.name = "m/data/0", .contents = "0123456789", .same_place_as = 1});
  EXPECT_ERROR(check_zip(ArchiveWriter().write(records), "a.pt"), kInput, "the name m/data/0 is there twice");
  // A record whose bytes are a whole record themselves.
  const Bytes inner = ArchiveWriter().write({{.name = "m/x", .contents = "inside"}});
  std::vector<Record> nested{{.name = "m/outer", .contents = std::string(as_text(inner))}, {.name = "m/x", .contents = "inside"}};
  Bytes archive = ArchiveWriter().write(nested);
  ASSERT_EQ(check_zip(archive, "a.pt").size(), 2u);
  const std::size_t entry = as_text(archive).rfind(std::string("PK\x01\x02", 4));
  const std::size_t inside = 30 + std::string("m/outer").size();
  for (std::size_t i = 0; i < 4; ++i) archive[entry + 42 + i] = static_cast<std::byte>(inside >> (8 * i) & 255);
  EXPECT_ERROR(check_zip(archive, "a.pt"), kInput, "m/x begins at byte 37, inside another record");
}

TEST(CheckedZip, NothingLiesBeforeOrBehindTheArchive) {
  ArchiveWriter commented, prefixed, claiming;
  commented.comment = "a comment";
  EXPECT_ERROR(check_zip(commented.write(kTwo), "a.pt"), kInput, "does not end with its end record");
  prefixed.before = "#!/bin/sh\n";
  EXPECT_ERROR(check_zip(prefixed.write(kTwo), "a.pt"), kInput, "does not begin with its first record");
  claiming.zip64 = true;
  claiming.claimed_more = 1;
  EXPECT_ERROR(check_zip(claiming.write(kTwo), "a.pt"), kInput, "its directory has another size than it says");
}

TEST(CheckedZip, AnArchiveCutOffOrChangedAnywhereIsRefused) {
  const Bytes whole = ArchiveWriter().write(two_with([](Record& record) { record.has_descriptor = true; }));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(check_zip(std::span(whole).first(size), "a.pt"), Error) << size;
  // Nothing is read from versions, dates, attributes and the second count of entries.
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= std::byte{0x41};
    try {
      const std::vector<ZipMember> members = check_zip(changed, "a.pt");
      ASSERT_EQ(members.size(), 2u);
      EXPECT_EQ(as_text(packed_bytes(changed, members[0], "a.pt")), "hello");
      EXPECT_EQ(as_text(packed_bytes(changed, members[1], "a.pt")), "0123456789");
      ++accepted;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
    }
  }
  EXPECT_LT(accepted, whole.size() / 3);
}

}  // namespace
}  // namespace holdfast
