// Compression by zlib, piece by piece.
// SPDX-License-Identifier: Apache-2.0
#include "reports/gzip.h"

#include <zlib.h>

#include <array>

#include "base/error.h"

namespace interlock {
namespace {

constexpr int kZlib = 15;          // the largest window
constexpr int kGzip = kZlib + 16;  // with gzip's header
constexpr int kLevel = 3;          // 6 takes twice as long for a tenth less
constexpr int kMemory = 8;
constexpr std::size_t kBlock = std::size_t{1} << 18;

using Block = std::array<unsigned char, kBlock>;

/// zlib reads its input, though its type does not say so.
void give(z_stream& stream, std::string_view piece) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream.avail_in = static_cast<uInt>(piece.size());
}

class Deflater {
 public:
  Deflater(const TextSink& out, int format) : out_(out) {
    const int done =
        deflateInit2(&stream_, kLevel, Z_DEFLATED, format, kMemory, Z_DEFAULT_STRATEGY);
    CHECK(done == Z_OK, "zlib has memory to compress");
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }

  void add(std::string_view piece) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kBlock))) {
      run(piece.substr(0, kBlock), Z_NO_FLUSH);
    }
  }
  void finish() { run({}, Z_FINISH); }

 private:
  void run(std::string_view piece, int flush) {
    give(stream_, piece);
    do {
      stream_.next_out = block_.data();
      stream_.avail_out = kBlock;
      deflate(&stream_, flush);
      out_({reinterpret_cast<const char*>(block_.data()), kBlock - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

  const TextSink& out_;
  z_stream stream_{};
  Block block_{};
};

}  // namespace

bool is_gzip_name(const std::string& path) { return path.ends_with(".gz"); }

TextSource gzip(const TextSource& text) {
  return [text](const TextSink& out) {
    Deflater deflater(out, kGzip);
    text([&](std::string_view piece) { deflater.add(piece); });
    deflater.finish();
  };
}

std::string deflated(std::string_view bytes) {
  std::string text;
  const TextSink sink = [&](std::string_view piece) { text += piece; };
  Deflater deflater(sink, kZlib);
  deflater.add(bytes);
  deflater.finish();
  return text;
}

std::string gunzip(std::string_view bytes, const std::string& name) {
  z_stream stream{};
  CHECK(inflateInit2(&stream, kGzip) == Z_OK, "zlib has memory to expand");
  give(stream, bytes);
  std::string text, block(kBlock, '\0');
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = kBlock;
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(block, 0, kBlock - stream.avail_out);
    if (state == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) state = Z_BUF_ERROR;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END) throw Error(name + ": compressed text is damaged or cut off");
  return text;
}

}  // namespace interlock
