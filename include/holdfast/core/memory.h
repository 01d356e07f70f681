// How much memory the program may take, and arrays that take none: they lie in files, of which the kernel keeps in memory what it
// has room for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "holdfast/core/error.h"

namespace holdfast {

// The work needs more memory than there is, or than it may take.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(ErrorKind::kFailure, message) {}
};

// "4G", "512M", "1.5 GiB": bytes, in powers of 1024. Throws kUsage naming `where`.
std::int64_t parse_memory(const std::string& text, const std::string& where);
// "1.5 GiB"
std::string memory_in_words(std::int64_t bytes);

// Bytes that are free on this machine and in the containers (cgroups, version 1 and 2) around this process. `root` is for tests.
std::int64_t available_memory(const std::string& root = "");

// What the program may take; no limit until one is set. Files that are read whole are held against it, and tensors on the CPU
// (core/tensor_memory.h).
inline constexpr std::int64_t kNoMemoryLimit = std::numeric_limits<std::int64_t>::max();
void set_memory_limit(std::int64_t bytes);
std::int64_t memory_limit();
// Throws OutOfMemory when `where` takes more than that by itself.
void check_memory(std::size_t bytes, const std::string& where);

// Bytes of a file, mapped. Copies share them.
class MappedBytes {
 public:
  MappedBytes() = default;
  // The whole of a regular file, for reading: nothing may be written to the bytes. Throws kInput.
  static MappedBytes of_file(const std::string& path);
  // Zeros to write to, in a file without a name in the scratch folder: it goes with the last copy, or with the process. Throws
  // kFailure when the disk is full.
  static MappedBytes scratch(std::size_t size);

  std::span<std::byte> bytes() const;

 private:
  struct Mapping;
  explicit MappedBytes(std::shared_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
  std::shared_ptr<Mapping> mapping_;
};

// Arrays of at least kLargeBytes lie in files in this folder from now on; "": none do. The folder must stay.
void set_scratch_folder(const std::string& folder);
inline constexpr std::size_t kLargeBytes = std::size_t{16} << 20;
// Whether an array of so many bytes belongs into a file.
bool is_large(std::size_t bytes);

// Takes the pages of all mapped bytes out of memory; they come back when they are next looked at.
void release_pages();
// For those who go through mapped bytes: releases the pages each time that 8 MiB more were looked at.
void count_looked_at(std::size_t bytes);

// An allocator for std::vector whose large arrays are mapped. Elements are left as they are where no value is given.
template <class T>
class LargeAllocator {
 public:
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(std::size_t count);
  void deallocate(T* begin, std::size_t count);
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
  }
  bool operator==(const LargeAllocator&) const { return true; }
};

// Memory of an array of doubles and the like, mapped where it is large.
void* allocate_large(std::size_t bytes);
void free_large(void* begin);

template <class T>
T* LargeAllocator<T>::allocate(std::size_t count) {
  return static_cast<T*>(allocate_large(count * sizeof(T)));
}
template <class T>
void LargeAllocator<T>::deallocate(T* begin, std::size_t) {
  free_large(begin);
}

}  // namespace holdfast
