#pragma once

#include "base/error.h"
#include "documents/document.h"
#include "documents/tensorscope/data_flow.h"
#include "unit/documents/mutation.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tenon::documents::tensorscope {

// Helpers of the tests of TensorScope's tables.

inline const char* const alexnet = "tensorscope_alexnet.nodes.txt";
inline const char* const two_gpus = "tensorscope_two_gpus.nodes.txt";
inline const char* const small_step = "tensorscope_small_step.nodes.txt";

inline TensorScopeTable read_table(const char* fixture) {
  return parse_table(read_fixture(fixture), fixture);
}

inline std::unique_ptr<documents::Document> read_document(const std::string& text) {
  return documents::find_document_format("tensorscope")->read(text, "table");
}

inline std::size_t count_kind(const TensorScopeTable& table, RowKind kind) {
  return static_cast<std::size_t>(
      std::ranges::count_if(table.rows, [&](const Row& row) { return row.kind == kind; }));
}

inline std::size_t count_op(const TensorScopeTable& table, const DataFlow& step,
                            std::string_view op) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < table.rows.size(); ++k)
    count += table.rows[k].kind == RowKind::Node && step.ops[k] == op;
  return count;
}

// The names of a node's operands.
inline std::vector<std::string> sources_of(const TensorScopeTable& table, const DataFlow& step,
                                           std::string_view node) {
  std::vector<std::string> names;
  for (const DataSource& source : step.sources[static_cast<std::size_t>(table.find_node(node))]) {
    names.push_back(source.row < 0 ? "?" : table.rows[static_cast<std::size_t>(source.row)].name());
  }
  return names;
}

inline std::string mismatches_of(const documents::Findings& findings) {
  std::string text;
  for (const auto& each : findings.mismatches()) {
    text += concat(each.kind, " at ", each.place, ": ", each.says, " / ", each.should_be, "\n");
  }
  return text;
}

inline std::string section_text(const Page& page) {
  std::string text = page.title + "\n";
  for (const Page::Section& section : page.sections) {
    text += section.heading + "\n" + section.text + "\n";
    for (const auto& row : section.rows) {
      for (const Page::Cell& cell : row) text += cell.text + " | ";
      text += "\n";
    }
  }
  return text;
}

inline std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.insert(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace tenon::documents::tensorscope
