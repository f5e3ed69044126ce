#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// Something to look at: sections of prose and tables, shown by whoever has a screen.
struct Page {
  /// What a table shows, and the number behind it where the text is rounded or has a unit: bytes,
  /// seconds, operations, elements.
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
    /// paragraphs, before the table; may be empty
    std::string text;
    /// A column whose title starts with '>' is aligned to the right. No columns: no table.
    std::vector<std::string> columns;
    std::vector<std::vector<Cell>> rows;
  };
  std::string title;
  std::vector<Section> sections;
};

}  // namespace tenon
