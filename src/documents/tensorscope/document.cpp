#include "documents/document.h"

#include "base/error.h"
#include "documents/tensorscope/check.h"
#include "documents/tensorscope/describe.h"
#include "documents/tensorscope/export.h"
#include "documents/tensorscope/import.h"

namespace tenon::tensorscope {

DocumentFormat document_format();  // frontends/list.inc declares it for other files

namespace {

class NodeTable : public Document {
 public:
  NodeTable(TensorScopeTable table, std::string source)
      : table_(std::move(table)), step_(reconstruct(table_)), source_(std::move(source)) {}

  Graph graph() const override { return import_graph(table_, step_, source_); }
  std::string text(std::string_view style) const override {
    refuse_style("tensorscope", style);
    return print_table(table_);
  }
  Findings check() const override { return check_table(table_, step_); }
  Page describe() const override { return describe_table(table_, step_, source_); }

 private:
  TensorScopeTable table_;
  DataFlow step_;
  std::string source_;
};

// Matches "name, (shape) or ^name, …, TYPE, number".
bool is_like_a_row(std::string_view line) {
  const std::size_t first = line.find(", ");
  const std::size_t last = line.rfind(", ");
  if (first == std::string_view::npos || first == 0 || last <= first || last + 2 >= line.size())
    return false;
  if (line.substr(0, first).find(' ') != std::string_view::npos) return false;
  const char next = line[first + 2];
  if (next != '(' && next != '^') return false;
  if (line.find_first_not_of("0123456789", last + 2) != std::string_view::npos) return false;
  const std::string_view before = line.substr(0, last);
  const std::size_t type = before.rfind(", ");
  return type != std::string_view::npos && type > first &&
         before.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", type + 2) ==
             std::string_view::npos;
}

// One valid row among the first few suffices, so that a damaged file gets specific error messages.
bool recognises(std::string_view head) {
  for (int line = 0; line < 4; ++line) {
    const std::size_t end = head.find('\n');
    if (end == std::string_view::npos) return false;
    if (is_like_a_row(head.substr(0, end))) return true;
    head.remove_prefix(end + 1);
  }
  return false;
}

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  return std::make_unique<NodeTable>(parse_table(text, source), std::string(source));
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<NodeTable>(export_table(graph, own),
                                     graph.name.empty() ? "graph" : graph.name);
}

}  // namespace

DocumentFormat document_format() {
  return {"tensorscope", "TensorScope: the nodes of a TensorFlow step, as a table", recognises,
          read, put_down};
}

}  // namespace tenon::tensorscope
