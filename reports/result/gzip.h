// Gzip: text on its way to a file, compressed, and back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/file.h"

namespace interlock {

/// Whether a file of this name holds compressed text: "run.json.gz".
bool is_gzip_name(const std::string& path);

/// What `text` hands over, compressed as gzip does it, without name and date: equal texts give
/// equal bytes.
TextSource gzip(const TextSource& text);

/// `bytes` in zlib's format (RFC 1950), which browsers expand.
std::string deflated(std::string_view bytes);

/// The text of compressed pieces; of others, those themselves. Throws: Error, with `name` in it,
/// when a piece is asked for that is damaged or cut off.
TextPieces gunzip(const TextPieces& pieces, const std::string& name);

}  // namespace interlock
