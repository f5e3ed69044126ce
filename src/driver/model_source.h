#pragma once

#include "base/error.h"
#include "driver/model.h"
#include "program/program.h"

#include <optional>
#include <string>

namespace tenon {

/// What a model argument names: `zoo:NAME?…`, `random:SEED?…`, a file, or `-` for standard input.
/// What gives its bytes only once (a pipe) is read here, so that format, document and graph all
/// come from the same bytes.
class ModelSource {
 public:
  /// Throws Error (Usage) for what cannot be read.
  explicit ModelSource(std::string argument);
  /// A model that somebody has in memory.
  static ModelSource of_bytes(std::string bytes, std::string name = "the bytes given");

  /// What messages call it.
  const std::string& name() const { return name_; }

  /// The program in it, or nothing where it is no program. A program is machine code: it is taken
  /// only from a file that is called FILE.tnn or FILE.so, or where somebody says that this one is
  /// to be trusted. Throws Error otherwise.
  std::optional<Program> program(bool is_trusted) const;
  /// The file as its format has it, where it is a document of another system; null where it is not.
  LoadedDocument document() const;
  /// Throws Error for what is no model.
  Graph graph() const;

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
  /// of what can be read only once
  std::string bytes_;
};

}  // namespace tenon
