#include "documents/tensorscope/table.h"

#include "base/error.h"

#include <algorithm>
#include <array>

namespace tenon::documents::tensorscope {
namespace {

// TensorFlow has two names for some types; both occur.
constexpr std::array<ElementType, 35> elements = {{
    {"float32", DType::F32, 32},
    {"float64", DType::F64, 64},
    {"double", DType::F64, 64},
    {"float16", DType::F16, 16},
    {"half", DType::F16, 16},
    {"bfloat16", DType::BF16, 16},
    {"int64", DType::I64, 64},
    {"int32", DType::I32, 32},
    {"int16", DType::I16, 16},
    {"int8", DType::I8, 8},
    {"uint64", DType::U64, 64},
    {"uint32", DType::U32, 32},
    {"uint16", DType::U16, 16},
    {"uint8", DType::U8, 8},
    {"bool", DType::Bool, 8},
    {"complex64", DType::C64, 64},
    {"complex128", DType::C128, 128},
    {"string", DType::String, 0},
    {"resource", std::nullopt, 0},
    {"variant", std::nullopt, 0},
    {"qint8", std::nullopt, 8},
    {"quint8", std::nullopt, 8},
    {"qint16", std::nullopt, 16},
    {"quint16", std::nullopt, 16},
    {"qint32", std::nullopt, 32},
    {"int4", DType::I4, 8},
    {"uint4", DType::U4, 8},
    {"float8_e4m3fn", DType::F8E4M3FN, 8},
    {"float8_e5m2", DType::F8E5M2, 8},
    {"float8_e4m3fnuz", DType::F8E4M3FNUZ, 8},
    {"float8_e5m2fnuz", DType::F8E5M2FNUZ, 8},
    {"float8_e8m0fnu", DType::F8E8M0, 8},
    {"float4_e2m1fn", DType::F4E2M1, 8},
    {"int2", DType::I2, 8},
    {"uint2", DType::U2, 8},
}};

// Texts of a row's fields that are not lists.
std::vector<std::string> fields_of(const Row& row) {
  std::vector<std::string> fields{row.name()};
  if (!row.tells_inputs) {
    fields.emplace_back("(no input)");
  } else if (row.inputs.empty() && row.controls.empty()) {
    fields.emplace_back("(1)");
  }
  for (const TensorShape& input : row.inputs) fields.push_back("(" + to_string(input) + ")");
  for (const std::string& control : row.controls) fields.push_back("^" + control);
  if (row.bytes) {
    fields.push_back(concat("(output ", *row.bytes, " bytes)"));
  } else if (row.outputs.empty()) {
    fields.emplace_back("(no output)");
  }
  for (const TensorShape& output : row.outputs) fields.push_back("(" + to_string(output) + ")");
  fields.push_back(row.device.type);
  fields.push_back(std::to_string(row.device.index));
  return fields;
}

// Escapes ", ", the separator of fields.
std::string escaped(std::string_view text) {
  std::string made;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const bool ends_field = text[k] == ' ' && k > 0 && text[k - 1] == ',';
    made += text[k] == '%' ? "%25" : ends_field ? "%20" : std::string(1, text[k]);
  }
  return made;
}

}  // namespace

bool is_own(std::string_view note) { return note.starts_with("graph "); }

const ElementType* find_element(std::string_view word) {
  const auto found = std::find_if(elements.begin(), elements.end(),
                                  [&](const ElementType& each) { return each.word == word; });
  return found == elements.end() ? nullptr : &*found;
}

std::string_view element_word(DType dtype) {
  const auto found = std::find_if(elements.begin(), elements.end(),
                                  [&](const ElementType& each) { return each.dtype == dtype; });
  return found == elements.end() ? std::string_view() : found->word;
}

std::int64_t TensorShape::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;  // the reader bounds the product
  return count;
}

std::int64_t TensorShape::byte_count() const {
  const ElementType* type = find_element(element);
  return type == nullptr ? 0 : element_count() * type->bits / 8;
}

std::string to_string(const TensorShape& shape) {
  std::string text = shape.element == "float32" ? "" : shape.element + " ";
  if (shape.extents.empty()) return text + "1";
  if (shape.extents.size() == 1) return concat(text, shape.extents[0], "x1");
  for (std::size_t axis = 0; axis < shape.extents.size(); ++axis) {
    text += concat(axis == 0 ? "" : "x", shape.extents[axis]);
  }
  return text;
}

std::string to_string(const DeviceName& device) { return concat(device.type, ":", device.index); }

std::string_view copy_word(CopyKind kind) {
  switch (kind) {
    case CopyKind::HostToDevice:
      return "HtoD";
    case CopyKind::DeviceToHost:
      return "DtoH";
    case CopyKind::DeviceToDevice:
      return "DtoD";
    case CopyKind::PeerToPeer:
      return "PtoP";
    case CopyKind::HostToHost:
      return "HtoH";
  }
  return "";
}

std::string Row::name() const {
  switch (kind) {
    case RowKind::Node:
      return node;
    case RowKind::Feed:
      return concat("_arg_", node, "_", port, "_", number);
    case RowKind::Fetch:
      return concat("_retval_", node, "_", port, "_", number);
    case RowKind::Stream:
      return concat(node, ":", op);
    case RowKind::Note:
      return concat(node, ":tenon=", escaped(op));
    case RowKind::Copy:
      return concat(edge ? concat("edge_", *edge, "_") : "", node, ":MEMCPY", copy_word(copy));
  }
  return "";
}

std::int64_t TensorScopeTable::find_node(std::string_view name) const {
  const auto found = nodes_.find(std::string(name));
  return found == nodes_.end() ? -1 : found->second;
}

std::string_view TensorScopeTable::stream_op(std::string_view name) const {
  const auto found = stream_ops_.find(std::string(name));
  return found == stream_ops_.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view TensorScopeTable::note(std::string_view name) const {
  const auto found = notes_.find(std::string(name));
  return found == notes_.end() ? std::string_view() : std::string_view(found->second);
}

void TensorScopeTable::index() {
  nodes_.clear();
  stream_ops_.clear();
  notes_.clear();
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Row& row = rows[k];
    const bool gives = row.kind == RowKind::Node || row.kind == RowKind::Feed;
    if (gives) nodes_.emplace(row.name(), static_cast<std::int64_t>(k));
    if (row.kind == RowKind::Stream) stream_ops_.emplace(row.node, row.op);
    if (row.kind == RowKind::Note) notes_.emplace(row.node, row.op);
  }
}

std::string print_row(const Row& row) {
  std::string text;
  for (const std::string& field : fields_of(row)) text += (text.empty() ? "" : ", ") + field;
  return text;
}

std::string print_table(const TensorScopeTable& table) {
  std::string text;
  for (const Row& row : table.rows) text += print_row(row) + "\n";
  return text;
}

std::string place_of(const TensorScopeTable& table, std::size_t row, std::size_t field) {
  const std::vector<std::string> fields = fields_of(table.rows[row]);
  std::size_t column = 1;
  for (std::size_t k = 0; k < field && k < fields.size(); ++k) column += fields[k].size() + 2;
  return concat("line ", row + 1, ", column ", column);
}

std::size_t input_field(const Row&, std::size_t input) { return 1 + input; }

std::size_t output_field(const Row& row, std::size_t output) {
  const std::size_t before = row.inputs.size() + row.controls.size();
  return 1 + std::max<std::size_t>(before, 1) + output;
}

std::size_t device_field(const Row& row) {
  return output_field(row, std::max<std::size_t>(row.outputs.size(), 1)) + 1;
}

}  // namespace tenon::documents::tensorscope
