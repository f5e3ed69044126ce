#include "documents/document.h"

#include "documents/chainer/check.h"
#include "documents/chainer/describe.h"
#include "documents/chainer/importer.h"
#include "documents/chainer/problem.h"
#include "documents/chainer/tables.h"
#include "documents/chainer/writer.h"

namespace tenon::documents::chainer {
namespace {

class ChainerDocument : public Document {
 public:
  ChainerDocument(Tables tables, std::string source)
      : tables_(std::move(tables)), source_(std::move(source)) {}

  Graph graph() const override { return import_tables(tables_, source_); }
  std::string text(std::string_view style) const override {
    refuse_style("chainer", style);
    return print_tables(tables_);
  }
  Findings check() const override { return check_tables(tables_, source_); }
  Page describe() const override { return describe_tables(tables_, source_); }
  std::optional<RecordedRun> recorded_run(const RunReading& reading,
                                          const memory::DeviceSpec& device) const override {
    return chainer::recorded_run(tables_, source_, reading, device);
  }

 private:
  Tables tables_;
  std::string source_;
};

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  return std::make_unique<ChainerDocument>(parse_tables(text, source), std::string(source));
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<ChainerDocument>(tables_of(graph, own),
                                           graph.name.empty() ? "graph" : graph.name);
}

}  // namespace

DocumentFormat document_format() { return {*find_known_format("chainer"), read, put_down}; }

}  // namespace tenon::documents::chainer
