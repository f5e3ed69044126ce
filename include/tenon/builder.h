#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// Defined in src.
namespace tenon::inline ir {
class Graph;
class Constant;
class Type;
class Attributes;
}  // namespace tenon::inline ir

namespace tenon {

class Builder;

/// A value in a graph that a Builder is making; operators on it append nodes.
class Var {
 public:
  Var() = default;
  Var(Builder* builder, std::uint32_t id) : builder_(builder), id_(id) {}
  bool is_valid() const { return builder_ != nullptr; }
  Builder& builder() const { return *builder_; }
  std::uint32_t id() const { return id_; }

 private:
  Builder* builder_ = nullptr;
  std::uint32_t id_ = 0;
};

/// An attribute by name: numbers, flags, texts and lists. Element types ("f16"), enumerators
/// ("reflect") and symbolic dims ("2*N + 1") are texts.
struct Attr {
  using Integers = std::vector<std::int64_t>;
  using Value = std::variant<bool, std::int64_t, double, std::string, Integers, std::vector<double>,
                             std::vector<std::string>>;
  Attr(std::string attr, bool flag);
  Attr(std::string attr, int number);
  Attr(std::string attr, std::int64_t number);
  Attr(std::string attr, double number);
  Attr(std::string attr, const char* text);
  Attr(std::string attr, std::string text);
  Attr(std::string attr, Integers list);
  Attr(std::string attr, std::vector<double> list);
  Attr(std::string attr, std::vector<std::string> list);
  Attr(const Attr&);
  Attr(Attr&&) noexcept;
  Attr& operator=(const Attr&);
  Attr& operator=(Attr&&) noexcept;
  ~Attr();
  std::string name;
  Value value;
};

/// Builds a graph node by node; infers and checks types as nodes are added. Throws exceptions
/// derived from std::exception that describe the mismatch.
///
///     tenon::Builder b("mlp");
///     tenon::Var x = b.input("x", "f32[N, 784]");
///     tenon::Var w = b.normal("w", "f32[784, 10]", 1, 0.05);
///     b.output(b.call("softmax", {b.call("matmul", {x, w})}), "y");
///     tenon::Graph graph = b.take();
class Builder {
 public:
  explicit Builder(std::string graph_name = "");
  /// Appends to a graph that the caller owns and that outlives this builder.
  explicit Builder(Graph& graph);
  Builder(Builder&&) = delete;
  ~Builder();

  Var input(std::string name, std::string_view type);
  Var input(std::string name, const Type& type);
  /// A constant in its text form: "f32[2] [1, 2]", "i64[] 3", "f32[64] splat 1.0".
  Var constant(std::string_view text, std::string name = "");
  Var constant(const Constant& value, std::string name = "");
  /// Normally distributed values, identical on every machine; a layout ("f32[1, 1, 8, 8]@HWIO") is
  /// kept.
  Var normal(std::string name, std::string_view type, std::uint64_t seed, double deviation,
             double mean = 0);
  /// A constant of type i64[n].
  Var integers(const std::vector<std::int64_t>& values, std::string name = "");
  /// A scalar with the element type of `like`.
  Var scalar(double value, Var like);

  /// Adds one node and returns its first result; an invalid Var omits an optional operand.
  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}, std::string name = "");
  /// Returns all results; `names` has one entry per used result ("" chooses a name, "_" omits the
  /// result).
  std::vector<Var> call_all(std::string_view op, const std::vector<Var>& operands,
                            const std::vector<Attr>& attrs, std::vector<std::string> names);
  std::vector<Var> call_all(std::string_view op, const std::vector<Var>& operands,
                            const std::vector<Attr>& attrs, std::vector<std::string> names,
                            std::vector<Graph> bodies);
  std::vector<Var> call_all(std::string_view op, const std::vector<Var>& operands, Attributes attrs,
                            std::vector<std::string> names);
  std::vector<Var> call_all(std::string_view op, const std::vector<Var>& operands, Attributes attrs,
                            std::vector<std::string> names, std::vector<Graph> bodies);

  /// Makes `value` an output of the graph, under `name` if that is given.
  void output(Var value, std::string name = "");
  /// Sets the original name of the nodes added from here on; "" clears it.
  void set_node_name(std::string name);

  const Type& type(Var value) const;
  /// Returns the extents; -1 for symbols.
  std::vector<std::int64_t> shape(Var value) const;
  std::size_t rank(Var value) const;

  Graph& graph();
  /// Verifies the graph and moves it out; the builder must not be used afterwards.
  Graph take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Var operator+(Var a, Var b);
Var operator-(Var a, Var b);
Var operator*(Var a, Var b);
Var operator/(Var a, Var b);
Var operator+(Var a, double b);
Var operator-(Var a, double b);
Var operator*(Var a, double b);
Var operator/(Var a, double b);
Var operator+(double a, Var b);
Var operator-(double a, Var b);
Var operator*(double a, Var b);
Var operator/(double a, Var b);
Var operator-(Var a);

}  // namespace tenon
