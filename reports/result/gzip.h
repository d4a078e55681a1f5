// Gzip: text on its way to a file, compressed, and back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/file.h"

namespace interlock {

/// Returns whether a file of this name holds compressed text, e.g. "run.json.gz".
bool is_gzip_name(const std::string& path);

/// Returns the bytes of `text` as gzip compresses them, without name and date: equal texts give
/// equal bytes.
TextSource gzip(const TextSource& text);

/// Returns `bytes` in zlib's format (RFC 1950), which browsers expand.
std::string deflated(std::string_view bytes);

/// Returns the text of compressed pieces; of other pieces, the pieces themselves. Throws: Error,
/// with `name` in it, when a piece is asked for that is damaged or cut off.
TextPieces gunzip(const TextPieces& pieces, const std::string& name);

}  // namespace interlock
