// Compression by zlib, piece by piece.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/error.h"

namespace interlock {
namespace {

constexpr int kZlib = 15;          // the largest window
constexpr int kGzip = kZlib + 16;  // with gzip's header
constexpr int kLevel = 3;          // 6 takes twice as long for a tenth less
constexpr int kMemory = 8;
constexpr std::size_t kBlock = std::size_t{1} << 18;

using Block = std::array<unsigned char, kBlock>;

/// Gives `piece` to zlib, which only reads it, though its type does not say so.
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

/// Expands what it is given piece by piece.
class Inflater {
 public:
  Inflater(const TextPieces& pieces, const std::string& name) : pieces_(pieces), name_(name) {
    CHECK(inflateInit2(&stream_, kGzip) == Z_OK, "zlib has memory to expand");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  /// Returns the bytes that were read and are not yet used.
  std::string_view rest() const { return rest_; }
  /// Reads on if no bytes are left. Returns whether there are bytes then.
  bool fill() {
    if (rest_.empty()) rest_ = pieces_();
    return !rest_.empty();
  }
  std::string_view as_it_is() {
    fill();
    return std::exchange(rest_, {});
  }
  std::string_view next() {
    stream_.next_out = block_.data();
    stream_.avail_out = kBlock;
    while (stream_.avail_out == kBlock) {
      const bool more = fill();
      if (state_ == Z_STREAM_END && !more) break;
      if (state_ == Z_STREAM_END) inflateReset(&stream_);  // texts may follow each other
      give(stream_, rest_);
      state_ = more ? inflate(&stream_, Z_NO_FLUSH) : Z_BUF_ERROR;
      check_growth(rest_.size() - stream_.avail_in);
      rest_ = rest_.substr(rest_.size() - stream_.avail_in);
      if (state_ != Z_OK && state_ != Z_STREAM_END) {
        throw Error(name_ + ": compressed text is damaged or cut off");
      }
    }
    return {reinterpret_cast<const char*>(block_.data()), kBlock - stream_.avail_out};
  }

 private:
  /// Refuses a text that is made to fill the disk or the time of who expands it.
  void check_growth(std::size_t used) {
    constexpr std::size_t kUsual = 200, kAlways = std::size_t{1} << 28;
    used_ += used;
    if (stream_.avail_out == 0) made_ += kBlock;
    if (made_ <= kAlways || made_ / kUsual <= used_) return;
    throw Error(name_ + ": expands to more than " + std::to_string(kUsual) +
                " times its size; expected a text that a program wrote");
  }

  TextPieces pieces_;
  std::string name_;
  std::string_view rest_;
  std::size_t used_ = 0, made_ = 0;  // bytes of both texts
  z_stream stream_{};
  int state_ = Z_OK;
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

TextPieces gunzip(const TextPieces& pieces, const std::string& name) {
  constexpr std::string_view kMagic = "\x1f\x8b";
  const auto inflater = std::make_shared<Inflater>(pieces, name);
  const bool compressed = inflater->fill() && inflater->rest().starts_with(kMagic);
  return [inflater, compressed] { return compressed ? inflater->next() : inflater->as_it_is(); };
}

}  // namespace interlock
