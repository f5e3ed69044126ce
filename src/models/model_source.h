#pragma once

#include "base/error.h"
#include "models/model.h"
#include "program/program.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::models {

/// A model argument: `zoo:NAME?…`, `random:SEED?…`, a file, or `-` for standard input. Input that
/// can be read only once (a pipe) is buffered here, so that format, document and graph come from
/// the same bytes.
class ModelSource {
 public:
  /// Throws Error (Usage) if it cannot be read.
  explicit ModelSource(std::string argument);
  /// Returns a model in memory.
  static ModelSource of_bytes(std::string bytes, std::string name = "the bytes given");

  /// Name for messages.
  const std::string& name() const { return name_; }

  /// Returns the program in it, or nullopt if it is not a program. A program is machine code: it is
  /// loaded only from a file named FILE.tnn or FILE.so, or if the caller trusts it explicitly.
  /// Throws Error otherwise.
  std::optional<Program> program(bool is_trusted) const;
  /// Returns the document if the file has a foreign format; null otherwise.
  LoadedDocument document() const;
  /// Throws Error if it is not a model. `warnings` receives what importers tolerate.
  Graph graph(std::vector<std::string>* warnings = nullptr) const;

 private:
  enum class Kind { Zoo, Random, File, Bytes };

  ModelSource() = default;

  bool is_program() const;
  void add_values(Graph& graph) const;
  Error unrecognised() const;
  std::string head() const;
  std::string whole() const;

  Kind kind_ = Kind::File;
  std::string argument_, name_;
  /// of input that can be read only once
  std::string bytes_;
};

}  // namespace tenon::models
