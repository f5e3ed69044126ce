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
  /// A column whose title starts with '>' is aligned to the right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> row);
  /// Cells are broken into lines where the table would be wider than the terminal it is printed to,
  /// and where that is not enough the last columns are left out and named below; elsewhere a row is
  /// one line, for programs that read it.
  void print(std::ostream& out) const;
  /// The same for a given width; 0 is any.
  void print(std::ostream& out, std::size_t most_columns) const;

 private:
  std::vector<std::size_t> widths(std::size_t most_columns) const;
  bool may_shrink(std::size_t column, std::size_t width) const;

  std::vector<std::string> titles_;
  std::vector<bool> is_right_;
  std::vector<std::vector<std::string>> rows_;
};

/// Headings, prose and tables.
void print_page(const Page& page, std::ostream& out);

/// A counter on stderr that overwrites itself; silent where stderr is not a terminal.
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
