#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {

class Graph;
class Constant;
class Type;
class Attributes;
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

/// An attribute by name: numbers, flags, texts and lists. Element types ("f16"), words ("reflect")
/// and dims with symbols ("2*N + 1") are given as texts.
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

/// Makes a graph, node by node; types are inferred and checked as nodes are added. Throws
/// std::exception-derived errors that say what does not fit.
///
///     tenon::Builder b("mlp");
///     tenon::Var x = b.input("x", "f32[N, 784]");
///     tenon::Var w = b.normal("w", "f32[784, 10]", 1, 0.05);
///     b.output(b.call("softmax", {b.call("matmul", {x, w})}), "y");
///     tenon::Graph graph = b.take();
class Builder {
 public:
  explicit Builder(std::string graph_name = "");
  /// Appends to a graph that somebody else owns and that outlives this builder.
  explicit Builder(Graph& graph);
  Builder(Builder&&) = delete;
  ~Builder();

  Var input(std::string name, std::string_view type);
  Var input(std::string name, const Type& type);
  /// A constant in its text form: "f32[2] [1, 2]", "i64[] 3", "f32[64] splat 1.0".
  Var constant(std::string_view text, std::string name = "");
  Var constant(const Constant& value, std::string name = "");
  /// Normally distributed, the same on every machine; a layout ("f32[1, 1, 8, 8]@HWIO") is kept.
  Var normal(std::string name, std::string_view type, std::uint64_t seed, double deviation,
             double mean = 0);
  /// i64[n]
  Var integers(const std::vector<std::int64_t>& values, std::string name = "");
  /// A scalar of the same element type as `like`.
  Var scalar(double value, Var like);

  /// One node; an invalid Var leaves an optional operand out. Gives the first result.
  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}, std::string name = "");
  /// All results; `names` has an entry for each wanted one ("" picks a name, "_" leaves it out).
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
  /// The source's own name for the nodes made from here on; "" for none.
  void set_node_name(std::string name);

  const Type& type(Var value) const;
  /// The extents; -1 where one is a symbol.
  std::vector<std::int64_t> shape(Var value) const;
  std::size_t rank(Var value) const;

  Graph& graph();
  /// Verifies the graph and hands it over; the builder is done.
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
