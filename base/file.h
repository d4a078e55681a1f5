// Files read whole and written whole: a reader never sees half a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace interlock {

/// Returns the bytes of `path`, a file or a pipe. Throws: Error naming the path and the reason,
/// also for more than `most`, and for a pipe that no program opens to write within ten seconds.
std::string read_file(const std::string& path, std::size_t most = SIZE_MAX);

/// Hands out a text piece by piece; a piece lasts until the next is asked for, and an empty one is
/// the end.
using TextPieces = std::function<std::string_view()>;
/// Returns the bytes of `path`, which may be more than fit in memory.
/// Throws: Error naming the path and the reason, also when a piece is asked for.
TextPieces read_pieces(const std::string& path);

/// Refuses a pipe or a device for a file that a scenario names, or a database: it may be read
/// several times, and a pipe may never be written to. Throws: Error.
void refuse_pipe(const std::string& path);

/// Replaces `path` in one step: writes a temporary file beside it, then renames it over. A link is
/// followed; a device or a pipe is written to, never replaced. Throws: Error naming the path and
/// the reason, e.g. that a pipe has no reader for ten seconds; `path` is then as it was.
void write_file(const std::string& path, std::string_view contents);

/// Takes a text piece by piece.
using TextSink = std::function<void(std::string_view)>;
/// Hands a text over to a sink, piece by piece.
using TextSource = std::function<void(const TextSink&)>;
/// Writes a text that is too large for memory, piece by piece. If `contents` throws, `path` stays
/// as it was.
void write_file(const std::string& path, const TextSource& contents);
/// Throws: Error if write_file() could not create the file `path`; leaves none behind.
void require_writable(const std::string& path);

/// Returns the folder of shipped data `name`, e.g. "models/zoo": under $INTERLOCK_DATA if set, else
/// where own_file() was installed, in share/interlock/, else in the source tree it was built from.
std::string data_folder(std::string_view name);

}  // namespace interlock
