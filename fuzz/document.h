#pragma once

#include "base/error.h"
#include "documents/document.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tenon {

/// Fuzz target of a document format: any bytes parse or end in an Error. A parsed document can be
/// checked, described and converted to a graph (or ends in an Error), and its text round-trips.
inline void fuzz_document(std::string_view format_name, const std::uint8_t* data,
                          std::size_t size) {
  const documents::DocumentFormat* format = documents::find_document_format(format_name);
  if (format == nullptr) std::abort();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<documents::Document> document;
  try {
    document = format->read(text, "input");
  } catch (const Error&) {
    return;
  }
  const std::string written = document->text("");
  if (format->read(written, "written")->text("") != written) std::abort();
  document->check();
  document->describe();
  try {
    const Graph graph = document->graph();
    format->from_graph(graph)->text("");
  } catch (const Error&) {
    return;  // documents may omit or contradict parts of a graph
  }
}

}  // namespace tenon
