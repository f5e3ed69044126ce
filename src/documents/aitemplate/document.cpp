#include "documents/document.h"

#include "documents/aitemplate/check.h"
#include "documents/aitemplate/describe.h"
#include "documents/aitemplate/export.h"
#include "documents/aitemplate/import.h"
#include "documents/aitemplate/read_dump.h"

namespace tenon::aitemplate {
namespace {

class DumpDocument : public Document {
 public:
  DumpDocument(Dump dump, SourceMap places, std::string source)
      : dump_(std::move(dump)), places_(std::move(places)), source_(std::move(source)) {}

  Graph graph() const override { return import_dump(dump_, source_); }
  std::string text(std::string_view style) const override {
    refuse_style("aitemplate", style);
    return print_dump(dump_);
  }
  Findings check() const override { return check_dump(dump_, places_); }
  Page describe() const override { return describe_dump(dump_); }

 private:
  Dump dump_;
  SourceMap places_;
  std::string source_;
};

bool recognises(std::string_view head) {
  const std::string_view start = "Tensors: ";
  if (head.substr(0, start.size()) != start) return false;
  const std::string_view rest = head.substr(start.size());
  return rest.substr(0, 1) == "{" || rest.substr(0, 12) == "\n\nOperators:";
}

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  ReadDump read = read_dump(text, source);
  return std::make_unique<DumpDocument>(std::move(read.dump), std::move(read.source),
                                        std::string(source));
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<DumpDocument>(export_dump(graph, own), SourceMap(), "graph");
}

}  // namespace

DocumentFormat document_format() {
  return {"aitemplate", "AITemplate's dump of a sorted graph", recognises, read, put_down};
}

}  // namespace tenon::aitemplate
