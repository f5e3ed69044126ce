#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::inline base {

/// A report of prose and tables, independent of the output format.
struct Page {
  /// Content of a table cell: its text, and the exact number if the text is rounded or has a unit
  /// (bytes, seconds, operations, elements).
  struct Cell {
    std::string text;
    std::optional<double> number;

    Cell(std::string shown) : text(std::move(shown)) {}  // NOLINT: a text is a cell
    Cell(std::string_view shown) : text(shown) {}        // NOLINT
    Cell(const char* shown) : text(shown) {}             // NOLINT
    Cell(std::string shown, double exact) : text(std::move(shown)), number(exact) {}
  };
  struct Section {
    std::string heading;
    /// Paragraphs before the table; may be empty.
    std::string text;
    /// A title that starts with '>' aligns its column to the right. Without columns the section has
    /// no table.
    std::vector<std::string> columns;
    std::vector<std::vector<Cell>> rows;
  };
  std::string title;
  std::vector<Section> sections;
};

}  // namespace tenon::inline base
