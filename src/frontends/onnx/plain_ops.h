#pragma once

#include "tenon/builder.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::frontends::onnx {

class NodeExport;
class NodeImport;
struct OnnxAttr;

/// A shared attribute of ONNX and Tenon with equal defaults.
struct PlainAttr {
  enum class Form : std::uint8_t {
    Same,
    /// ONNX's words are Tenon's in upper case
    UpperCase,
    /// written even if it is an empty list
    Stated,
    /// exists since `since`; omitted at its default
    Late,
    /// an input in newer opsets: read if the input is missing, never written
    Former,
  };
  std::string_view ours, theirs;
  Form form = Form::Same;
  int since = 1;

  constexpr PlainAttr() = default;
  constexpr PlainAttr(const char* name) : ours(name), theirs(name) {}  // NOLINT: both call it that
  constexpr PlainAttr(const char* our, const char* their, Form as = Form::Same)
      : ours(our), theirs(their), form(as) {}
  constexpr PlainAttr(const char* our, const char* their, int opset)
      : ours(our), theirs(their), form(Form::Late), since(opset) {}
};

/// A list in a constant table.
template <class T, std::size_t capacity>
class ShortList {
 public:
  constexpr ShortList(std::initializer_list<T> items = {}) {
    for (const T& item : items) items_[size_++] = item;  // beyond the capacity no constant
  }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }

 private:
  T items_[capacity] = {};
  std::size_t size_ = 0;
};
using PlainAttrs = ShortList<PlainAttr, 12>;

/// An operator that exists in ONNX and Tenon up to names. A dedicated handler or export rule has
/// priority for its direction.
struct PlainOp {
  std::string_view op, op_type;
  /// the opset of the written form
  int since = 1;
  PlainAttrs attrs = {};
  /// Operand names in the order of ONNX's inputs, if it differs.
  ShortList<std::string_view, 8> inputs = {};
  std::string_view domain = "";
};

/// The table, in the order of names.
std::span<const PlainOp> plain_ops();
/// null for other operators
const PlainOp* find_plain(std::string_view op_type);
/// Returns the attributes of a node in the table, for handlers that add others.
std::vector<Attr> plain_attrs(const NodeImport& node);
std::vector<OnnxAttr> plain_attrs(NodeExport& node);
/// Generic handler and export rule of these operators.
void import_plain(NodeImport& node);
void write_plain(NodeExport& node);

}  // namespace tenon::frontends::onnx
