#pragma once

#include "tenon/builder.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::onnx {

class NodeExport;
class NodeImport;
struct OnnxAttr;

/// An attribute that both have. Where a node of ONNX's does not state it, Tenon's default is what
/// ONNX says too.
struct PlainAttr {
  enum class Form : std::uint8_t {
    Same,
    /// ONNX's words are Tenon's in upper case
    UpperCase,
    /// written though it is an empty list
    Stated,
    /// exists since `since`; left out at its default
    Late,
    /// what is an input now: read where that is not given, never written
    Former,
  };
  std::string_view ours, theirs;
  Form form = Form::Same;
  int since = 1;

  PlainAttr(const char* name) : ours(name), theirs(name) {}  // NOLINT: both call it that
  PlainAttr(const char* our, const char* their, Form as = Form::Same)
      : ours(our), theirs(their), form(as) {}
  PlainAttr(const char* our, const char* their, int opset)
      : ours(our), theirs(their), form(Form::Late), since(opset) {}
};

/// An operator that ONNX and Tenon both have, but for names. In a direction that takes more than
/// that, a handler or an export rule of its own goes before.
struct PlainOp {
  std::string_view op, op_type;
  /// the opset that has it as it is written
  int since = 1;
  std::vector<PlainAttr> attrs = {};
  /// ONNX's inputs by the names of operands, where their order is another.
  std::vector<std::string_view> inputs = {};
  std::string_view domain = "";
};

std::span<const PlainOp> plain_ops();
/// null where there is none
const PlainOp* find_plain(std::string_view op_type);
/// The attributes of a node that has a row, for those who add others.
std::vector<Attr> plain_attrs(const NodeImport& node);
std::vector<OnnxAttr> plain_attrs(NodeExport& node);
/// The handler and the export rule of each.
void import_plain(NodeImport& node);
void write_plain(NodeExport& node);

}  // namespace tenon::onnx
