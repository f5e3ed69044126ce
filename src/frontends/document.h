#pragma once

#include "base/page.h"
#include "frontends/findings.h"
#include "frontends/own_node.h"
#include "ir/graph.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

/// A file written by another system, read into that format's own typed tables: the network and all
/// that the file says beyond it (order, times, memory, kernel choices). Nothing of it is lost.
class Document {
 public:
  virtual ~Document() = default;

  /// The network. Weights that the file only describes are seeded by their names, so that they are
  /// the same each time.
  virtual Graph graph() const = 0;
  /// The file again, from the tables. `style` names a variant of the format; "" is the usual one.
  virtual std::string text(std::string_view style) const = 0;
  /// Computes again what the file claims.
  virtual Findings check() const = 0;
  /// What the file says, for someone who has never seen the format.
  virtual Page describe() const = 0;

 protected:
  /// Throws Error where a style is named: the format has one only.
  static void refuse_style(std::string_view format, std::string_view style);
};

/// A document made of a graph, and what it takes to have the graph again.
struct WrittenDocument {
  std::unique_ptr<Document> document;
  /// The elements of constants that the document only describes, by the names that reading it gives
  /// them.
  std::vector<std::pair<std::string, Constant>> values;
};

/// How one format of documents is read and written.
struct DocumentFormat {
  /// as in `--to=NAME`
  std::string name;
  /// one line for lists
  std::string summary;
  /// Whether a file that starts like this (some KB) is probably of the format.
  bool (*recognises)(std::string_view head);
  /// Reads a whole file; `source` names it in messages. Throws Error with the place in it.
  std::unique_ptr<Document> (*read)(std::string_view text, std::string_view source);
  /// What the other system would have written of this graph; nodes that it has no word for, and
  /// those of `own`, as Tenon's own. Throws Error of kind Unsupported that lists everything that
  /// cannot be told at all.
  std::unique_ptr<Document> (*put_down)(const Graph& graph, const OwnNodes& own);

  /// Puts the graph down so that reading the document gives the same network and checking it finds
  /// nothing: what does not come back as it was goes as Tenon's own. Throws Error of kind
  /// Unsupported where that is not enough.
  WrittenDocument write(const Graph& graph) const;
  std::unique_ptr<Document> from_graph(const Graph& graph) const { return write(graph).document; }
};

/// Every format of `frontends/list.inc`, by name.
std::span<const DocumentFormat> document_formats();
/// Null if no format has that name.
const DocumentFormat* find_document_format(std::string_view name);

/// Gives constants of a graph the elements that `WrittenDocument::values` has for them. Throws
/// Error where the graph has no such constant.
void set_values(Graph& graph, const Graph& values);
/// The values as a graph that gives nothing, so that they have a text form.
Graph values_graph(const WrittenDocument& written);

}  // namespace tenon
