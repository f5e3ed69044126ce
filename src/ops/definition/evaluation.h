#pragma once

#include "ir/graph.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::inline base {
class Communicator;
}

namespace tenon::inline ops {

/// Runtime value: a tensor, a sequence, or an optional that may be empty.
class Datum {
 public:
  /// An empty optional.
  Datum() : kind_(Type::Kind::Optional) {}
  Datum(Tensor tensor) : kind_(Type::Kind::Tensor), tensor_(std::move(tensor)) {}  // NOLINT
  static Datum sequence(std::vector<Datum> items);
  /// `element_dtype` keeps the element type of an empty sequence.
  static Datum empty_sequence(DType element_dtype);
  static Datum optional(Datum item);

  Type::Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Type::Kind::Tensor; }
  const Tensor& tensor() const;
  Tensor& tensor();
  /// Items of a sequence, or the 0 or 1 items of an optional.
  const std::vector<Datum>& items() const;
  DType element_dtype() const { return element_dtype_; }
  Type type() const;

 private:
  Type::Kind kind_;
  Tensor tensor_;
  std::vector<Datum> items_;
  DType element_dtype_ = DType::F32;
};

/// Interface of a host function of an op that no expression describes.
class Evaluation {
 public:
  virtual ~Evaluation() = default;

  bool has(std::string_view operand) const;
  const Tensor& tensor(std::string_view operand) const;
  const Datum& datum(std::string_view operand) const;
  std::vector<Datum> variadic(std::string_view operand) const;
  bool wants(std::string_view result) const;
  std::size_t result_count() const { return results.size(); }
  void set(std::string_view result, Datum value);
  void set(std::size_t position, Datum value);

  /// Runs a body graph of the node.
  virtual std::vector<Datum> run_body(std::size_t body, std::vector<Datum> inputs) = 0;

  const OpDef* op = nullptr;
  std::vector<std::optional<Datum>> operands;
  std::vector<bool> wanted;
  std::vector<std::optional<Datum>> results;
  /// Inferred types; may be Unknown.
  std::vector<Type> result_types;
  /// Communicator of the ranks that run the graph; null for a single rank.
  Communicator* communicator = nullptr;
};

}  // namespace tenon::inline ops
