#pragma once

#include "base/page.h"
#include "documents/findings.h"
#include "documents/native_node.h"
#include "ir/graph.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

/// File of another system, read losslessly into typed tables of its format: the network and the
/// file's other contents (order, times, memory, kernel choices).
class Document {
 public:
  virtual ~Document() = default;

  /// Returns the network. Weights that the file only describes are seeded by name, so that they are
  /// reproducible.
  virtual Graph graph() const = 0;
  /// Prints the tables as a file again. `style` names a variant of the format; "" is the default.
  virtual std::string text(std::string_view style) const = 0;
  /// Recomputes the claims of the file.
  virtual Findings check() const = 0;
  /// Describes the file's contents for readers new to the format.
  virtual Page describe() const = 0;

 protected:
  /// Throws Error if a style is named, for formats with a single style.
  static void refuse_style(std::string_view format, std::string_view style);
};

/// A document written from a graph, and the values needed to restore the graph.
struct WrittenDocument {
  std::unique_ptr<Document> document;
  /// Elements of constants that the document only describes, by their names after reading it.
  std::vector<std::pair<std::string, Constant>> values;
};

/// Reader and writer of one document format.
struct DocumentFormat {
  /// Name in `--to=NAME`.
  std::string name;
  /// One line for lists.
  std::string summary;
  /// Returns whether a file that starts with `head` (some KB) is probably of the format.
  bool (*recognises)(std::string_view head);
  /// Reads a whole file; `source` names it in messages. Throws Error with the position.
  std::unique_ptr<Document> (*read)(std::string_view text, std::string_view source);
  /// Writes the document that the other system would have written for this graph; unsupported
  /// nodes, and those of `own`, become native Tenon nodes. Throws Error of kind Unsupported that
  /// lists everything without a representation.
  std::unique_ptr<Document> (*put_down)(const Graph& graph, const NativeNodes& own);

  /// Writes a document whose import equals the graph and whose check has no findings: nodes that
  /// change in a round trip are written as native Tenon nodes. Throws Error of kind Unsupported if
  /// that does not suffice.
  WrittenDocument write(const Graph& graph) const;
  std::unique_ptr<Document> from_graph(const Graph& graph) const { return write(graph).document; }
};

/// Returns every format of `frontends/list.inc`, by name.
std::span<const DocumentFormat> document_formats();
/// Returns null for an unknown name.
const DocumentFormat* find_document_format(std::string_view name);

/// Sets constants of a graph to the elements in `WrittenDocument::values`. Throws Error for a
/// missing constant.
void set_values(Graph& graph, const Graph& values);
/// Returns the values as a graph without outputs, which gives them a text form.
Graph values_graph(const WrittenDocument& written);

}  // namespace tenon
