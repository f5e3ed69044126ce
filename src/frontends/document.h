#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/page.h"
#include "frontends/findings.h"
#include "ir/graph.h"

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
};

/// How one format of documents is read and written.
struct DocumentFormat {
  std::string name;     ///< as in `--to=NAME`
  std::string summary;  ///< one line for lists
  /// Whether a file that starts like this (some KB) is probably of the format.
  bool (*recognises)(std::string_view head);
  /// Reads a whole file; `source` names it in messages. Throws Error with the place in it.
  std::unique_ptr<Document> (*read)(std::string_view text, std::string_view source);
  /// What the other system would have written of this graph. Throws Error of kind Unsupported that
  /// lists everything the format has no word for.
  std::unique_ptr<Document> (*from_graph)(const Graph& graph);
};

/// Every format of `frontends/list.inc`, by name.
std::span<const DocumentFormat> document_formats();
/// Null if no format has that name.
const DocumentFormat* find_document_format(std::string_view name);

}  // namespace tenon
