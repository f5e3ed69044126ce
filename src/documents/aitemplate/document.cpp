#include "documents/document.h"

#include "documents/aitemplate/check.h"
#include "documents/aitemplate/describe.h"
#include "documents/aitemplate/export.h"
#include "documents/aitemplate/import.h"
#include "documents/aitemplate/kernel_choices.h"
#include "documents/aitemplate/read_dump.h"

namespace tenon::documents::aitemplate {
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
  void add_kernels(const Graph& noted) override { dump_ = with_kernels(std::move(dump_), noted); }

 private:
  Dump dump_;
  SourceMap places_;
  std::string source_;
};

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  ReadDump read = read_dump(text, source);
  return std::make_unique<DumpDocument>(std::move(read.dump), std::move(read.source),
                                        std::string(source));
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<DumpDocument>(export_dump(graph, own), SourceMap(), "graph");
}

}  // namespace

DocumentFormat document_format() { return {*find_known_format("aitemplate"), read, put_down}; }

}  // namespace tenon::documents::aitemplate
