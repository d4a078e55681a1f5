// Gzip: text on its way to a file, compressed.
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

/// The text of compressed `bytes`. Throws: Error, with `name` in it, if they are damaged or cut.
std::string gunzip(std::string_view bytes, const std::string& name);

}  // namespace interlock
