// gzip data in memory. In one go by libdeflate where it is there, which takes half the time of zlib; by zlib where it is not, and
// for everything out of the ordinary.
#include <algorithm>
#include <memory>
#include <optional>

#include <zlib.h>

#ifdef HOLDFAST_LIBDEFLATE
#include <libdeflate.h>
#endif

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast {
namespace {

// Room for what gzip data says it decompresses to (its last four bytes), as far as its own size makes that credible. One
// byte more than that lets zlib see the end.
std::size_t expected_size(std::span<const std::byte> data, std::size_t limit) {
  constexpr std::size_t kMostExpansion = 1032;  // of a byte, by deflate
  std::size_t claimed = 0;
  for (std::size_t i = 1; i <= 4 && i <= data.size(); ++i)
    claimed = claimed << 8 | std::to_integer<std::size_t>(data[data.size() - i]);
  return std::min({std::max<std::size_t>(claimed + 1, 1 << 16), data.size() * kMostExpansion + 1, limit + 1});
}

// With zlib, in pieces: knows why it fails, and takes files put one behind the other.
Bytes gunzip_in_pieces(std::span<const std::byte> data, const std::string& where, std::size_t limit) {
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) failure("{}: zlib has no memory", where);
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> guard(&stream, &inflateEnd);

  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // zlib counts in 32 bits
  Bytes result(expected_size(data, limit));
  std::size_t read = 0, filled = 0;
  while (true) {
    if (filled == result.size()) {
      // One byte above the limit is enough to see that there is more.
      if (filled > limit) input_error("{}: decompresses to more than {} bytes", where, limit);
      result.resize(std::min(std::max<std::size_t>(2 * filled, 1 << 16), limit + 1));
    }
    const std::size_t in = std::min(data.size() - read, kMostAtOnce), out = std::min(result.size() - filled, kMostAtOnce);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(result.data() + filled);
    stream.avail_out = static_cast<uInt>(out);
    const int status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    filled += out - stream.avail_out;
    if (status == Z_STREAM_END) {
      if (read == data.size()) break;
      inflateReset(&stream);  // gzip files may be put one behind the other
    } else if (status == Z_BUF_ERROR && read == data.size() && filled < result.size()) {
      input_error("{}: the gzip data is truncated", where);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      input_error("{}: the gzip data is damaged ({})", where, stream.msg == nullptr ? "unknown reason" : stream.msg);
    }
  }
  if (filled > limit) input_error("{}: decompresses to more than {} bytes", where, limit);
  result.resize(filled);
  return result;
}

#ifdef HOLDFAST_LIBDEFLATE
// Nothing unless the data is one sound gzip file that decompresses to at most `limit` bytes.
std::optional<Bytes> gunzip_at_once(std::span<const std::byte> data, std::size_t limit) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> tool(libdeflate_alloc_decompressor(),
                                                                                               &libdeflate_free_decompressor);
  if (!tool) return std::nullopt;
  Bytes result(expected_size(data, limit));
  std::size_t read = 0, filled = 0;
  const libdeflate_result status =
      libdeflate_gzip_decompress_ex(tool.get(), data.data(), data.size(), result.data(), result.size(), &read, &filled);
  if (status != LIBDEFLATE_SUCCESS || read != data.size() || filled > limit) return std::nullopt;
  result.resize(filled);
  return result;
}
#endif

}  // namespace

Bytes gunzip(std::span<const std::byte> data, const std::string& where, std::size_t limit) {
#ifdef HOLDFAST_LIBDEFLATE
  if (std::optional<Bytes> result = gunzip_at_once(data, limit)) return std::move(*result);
#endif
  return gunzip_in_pieces(data, where, limit);
}

}  // namespace holdfast
