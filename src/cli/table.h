#pragma once

#include "base/page.h"

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace tenon::cli {

/// Rows of text in aligned columns.
class Table {
 public:
  /// A title that starts with '>' aligns its column to the right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> row);
  /// On a terminal, wraps cells of a table that is too wide, and if that does not suffice omits the
  /// last columns and names them below; otherwise a row is one line, for programs that read it.
  void print(std::ostream& out) const;
  /// The same for a given width; 0 is unlimited.
  void print(std::ostream& out, std::size_t most_columns) const;

 private:
  std::vector<std::size_t> widths(std::size_t most_columns) const;
  bool may_shrink(std::size_t column, std::size_t width) const;

  std::vector<std::string> titles_;
  std::vector<bool> is_right_;
  std::vector<std::vector<std::string>> rows_;
};

/// Prints headings, prose and tables.
void print_page(const Page& page, std::ostream& out);

/// A counter on stderr that overwrites itself; silent if stderr is not a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  void update(std::size_t done, std::size_t total);

 private:
  std::string what_;
  bool is_shown_;
  std::size_t last_percent_ = static_cast<std::size_t>(-1);
};

}  // namespace tenon::cli
