// Pages: documents with commands and what these write, which tests compare and renew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/cli/child_program.h"

namespace interlock {

/// The root of the tree as far as commands see it, with a ./run that builds nothing.
void furnish(const Folder& folder);

/// A command of a page and the lines below it that it prints, if it prints some.
struct PageCommand {
  std::string line;
  std::size_t from = 0, to = 0;  // lines of the page
  /// Returns the picture under docs/ that --out or --figure names; empty if they name none.
  std::string out() const;
};

struct Page {
  std::vector<std::string> lines;
  std::vector<PageCommand> commands;
  std::string printed(const PageCommand& command) const;
};

/// Finds the commands of a page: lines in blocks fenced by ```sh that begin with ./run, each with
/// the lines that it goes on in after a backslash. What the last command of a block prints is the
/// table in Markdown, or the block fenced by ```, that comes next.
Page read_page(const std::string& text);

/// Runs the commands of the page at `path` one after the other in one folder, and compares what
/// they print; with UPDATE_PAGES=1 it rewrites page and pictures first. `exact`: to the last digit;
/// else words and rows alone, for numbers that follow the catalogue of devices.
void check_page(const std::string& path, bool exact);

/// Compares the file at `path` with what the program prints for `words`; with UPDATE_PAGES=1 it
/// rewrites the file first.
void check_printed(const std::string& path, const std::vector<std::string>& words);

}  // namespace interlock
