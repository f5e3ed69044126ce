#include "documents/document.h"

#include "documents/chainer/check.h"
#include "documents/chainer/describe.h"
#include "documents/chainer/importer.h"
#include "documents/chainer/tables.h"
#include "documents/chainer/writer.h"

#include <algorithm>

namespace tenon::chainer {
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

 private:
  Tables tables_;
  std::string source_;
};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 12 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Recognises two counts followed by lines of an id, a size and a name.
bool recognises(std::string_view head) {
  const std::size_t first_end = head.find('\n');
  if (first_end == std::string_view::npos) return false;
  const std::string_view first = head.substr(0, first_end);
  const std::size_t gap = first.find(' ');
  if (gap == std::string_view::npos || !is_number(first.substr(0, gap)) ||
      !is_number(first.substr(gap + 1))) {
    return false;
  }
  const std::string_view rest = head.substr(first_end + 1);
  const std::string_view second = rest.substr(0, rest.find('\n'));
  const std::size_t id_end = second.find(' ');
  if (id_end == std::string_view::npos || !is_number(second.substr(0, id_end))) return false;
  const std::size_t bytes_end = second.find(' ', id_end + 1);
  return bytes_end != std::string_view::npos && bytes_end > id_end + 1 &&
         second.find_first_not_of("0123456789", id_end + 1) == bytes_end &&
         bytes_end + 1 < second.size();
}

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  return std::make_unique<ChainerDocument>(parse_tables(text, source), std::string(source));
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<ChainerDocument>(tables_of(graph, own),
                                           graph.name.empty() ? "graph" : graph.name);
}

}  // namespace

DocumentFormat document_format() {
  return {"chainer",
          "a training step dumped from Chainer: variables, functions, what backward needs",
          recognises, read, put_down};
}

}  // namespace tenon::chainer
