#pragma once

#include "base/page.h"
#include "documents/findings.h"
#include "documents/known_formats.h"
#include "documents/native_node.h"
#include "documents/recorded_run.h"
#include "ir/graph.h"
#include "program/run_profile.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tenon::documents {

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

  /// Adds the kernels noted in a graph (`kernel_choices.h`), if the format names kernels.
  virtual void add_kernels(const Graph& /*noted*/) {}
  /// Returns the recorded run as a memory problem, or nullopt if the document records none.
  virtual std::optional<RecordedRun> recorded_run(const RunReading& /*reading*/,
                                                  const memory::DeviceSpec& /*device*/) const {
    return std::nullopt;
  }
  /// Returns the recorded run as a profile, or nullopt if the document has no times.
  virtual std::optional<Profile> profile() const { return std::nullopt; }

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

/// Work of a node by the rules of another system.
struct CountedWork {
  /// operations, and bytes of operands and results
  double computation = 0, memory = 0;
};

/// Reader and writer of one document format.
struct DocumentFormat : KnownFormat {
  /// Reads a whole file; `source` names it in messages. Throws Error with the position.
  std::unique_ptr<Document> (*read)(std::string_view text, std::string_view source);
  /// Writes the document that the other system would have written for this graph; unsupported
  /// nodes, and those of `own`, become native Tenon nodes. Throws Error of kind Unsupported that
  /// lists everything without a representation.
  std::unique_ptr<Document> (*put_down)(const Graph& graph, const NativeNodes& own);
  /// Optional: prints a run of the compiled graph.
  std::string (*print_run)(const Profile& profile, const Graph& graph) = nullptr;
  /// Optional: counts a node's work, given the values of symbols.
  CountedWork (*count_work)(const Graph& graph, NodeId node, const DimBindings& symbols) = nullptr;

  /// Writes a document whose import equals the graph and whose check has no findings: nodes that
  /// change in a round trip are written as native Tenon nodes. Throws Error of kind Unsupported if
  /// that does not suffice.
  WrittenDocument write(const Graph& graph) const;
  std::unique_ptr<Document> from_graph(const Graph& graph) const { return write(graph).document; }
};

/// Returns every format of `documents/list.inc`; none in a build without documents.
std::span<const DocumentFormat> document_formats();
/// Returns null for an unknown name. Throws Error (Usage) for a known format that this build lacks.
const DocumentFormat* find_document_format(std::string_view name);
/// Returns the format of a file by its start, null for other files. Throws Error as
/// `find_document_format` does.
const DocumentFormat* recognised_format(std::string_view head);

/// Sets constants of a graph to the elements in `WrittenDocument::values`. Throws Error for a
/// missing constant.
void set_values(Graph& graph, const Graph& values);
/// Returns the values as a graph without outputs, which gives them a text form.
Graph values_graph(const WrittenDocument& written);

}  // namespace tenon::documents
