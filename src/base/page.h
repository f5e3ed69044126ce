#pragma once

#include <string>
#include <vector>

namespace tenon {

/// Something to look at: sections of prose and tables, shown by whoever has a screen.
struct Page {
  struct Section {
    std::string heading;
    std::string text;                  ///< paragraphs, before the table; may be empty
    /// A column whose title starts with '>' is aligned to the right. No columns: no table.
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
  };
  std::string title;
  std::vector<Section> sections;
};

}  // namespace tenon
