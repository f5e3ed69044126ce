#include "documents/document.h"

#include "base/error.h"
#include "documents/tensorscope/check.h"
#include "documents/tensorscope/describe.h"
#include "documents/tensorscope/export.h"
#include "documents/tensorscope/import.h"

namespace tenon::documents::tensorscope {

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

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  return std::make_unique<NodeTable>(parse_table(text, source), std::string(source));
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<NodeTable>(export_table(graph, own),
                                     graph.name.empty() ? "graph" : graph.name);
}

}  // namespace

DocumentFormat document_format() { return {*find_known_format("tensorscope"), read, put_down}; }

}  // namespace tenon::documents::tensorscope
