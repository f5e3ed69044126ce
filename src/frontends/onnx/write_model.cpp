// Writes the file: a small message, then the weights, materialized one at a time.
#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "expr/fused_groups.h"
#include "frontends/onnx/export.h"
#include "frontends/onnx/exporter.h"
#include "frontends/onnx/field_numbers.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::TensorProto;

// Smaller tensors stay readable in the model itself; mapping a large one needs a whole page.
constexpr std::uint64_t kMinExternalBytes = 1024;
constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t raw_bytes(const Constant& value) {
  const auto bits = static_cast<std::uint64_t>(info(value.dtype()).bits);
  return (static_cast<std::uint64_t>(value.size()) * bits + 7) / 8;
}

std::uint64_t total_bytes(const std::vector<ExportedConstant>& constants) {
  std::uint64_t total = 0;
  for (const ExportedConstant& constant : constants) total += raw_bytes(constant.value);
  return total;
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 128; number >>= 7) bytes += static_cast<char>(number | 128);
  return bytes + static_cast<char>(number);
}

std::string tag_and_length(int field, std::uint64_t length) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(length);
}

// An initializer without its elements.
std::string tensor_head(const ExportedConstant& constant) {
  TensorProto head;
  head.set_name(constant.name);
  head.set_data_type(onnx_element_type(constant.value.dtype()));
  const Shape& shape = constant.value.shape();
  head.mutable_dims()->Assign(shape.begin(), shape.end());
  if (constant.value.dtype() == DType::String) {
    for (const std::string& text : constant.value.materialise().strings())
      head.add_string_data(text);
  }
  return head.SerializeAsString();
}

// The bytes before each initializer's elements, and the elements' size.
struct Initializer {
  std::string before;
  std::uint64_t element_bytes = 0;
};

Initializer initializer_of(const ExportedConstant& constant) {
  const std::string head = tensor_head(constant);
  Initializer initializer;
  std::string raw_header;
  if (constant.value.dtype() != DType::String) {
    initializer.element_bytes = raw_bytes(constant.value);
    raw_header = tag_and_length(kTensorRawData, initializer.element_bytes);
  }
  const std::uint64_t size = head.size() + raw_header.size() + initializer.element_bytes;
  initializer.before = tag_and_length(kGraphInitializer, size) + head + raw_header;
  return initializer;
}

// Protobuf accepts fields in any order, so the initializers may follow the rest of the graph one at
// a time.
void write_embedded(const onnx_schema::ModelProto& model,
                    const std::vector<ExportedConstant>& constants, std::ostream& out) {
  const std::string graph = model.graph().SerializeAsString();
  onnx_schema::ModelProto rest = model;
  rest.clear_graph();
  std::vector<Initializer> initializers;
  std::uint64_t graph_bytes = graph.size();
  for (const ExportedConstant& constant : constants) {
    initializers.push_back(initializer_of(constant));
    graph_bytes += initializers.back().before.size() + initializers.back().element_bytes;
  }
  out << rest.SerializeAsString() << tag_and_length(kModelGraph, graph_bytes) << graph;
  for (std::size_t k = 0; k < constants.size(); ++k) {
    out << initializers[k].before;
    if (initializers[k].element_bytes > 0) out << packed_bytes(constants[k].value.materialise());
  }
}

void write_external(const onnx_schema::ModelProto& model,
                    const std::vector<ExportedConstant>& constants, const std::string& location,
                    std::ostream& out, std::ostream& data) {
  onnx_schema::ModelProto whole = model;
  std::uint64_t offset = 0;
  for (const ExportedConstant& constant : constants) {
    TensorProto& tensor = *whole.mutable_graph()->add_initializer();
    const std::uint64_t size = raw_bytes(constant.value);
    if (constant.value.dtype() == DType::String || size < kMinExternalBytes) {
      write_tensor(constant.value.materialise(), tensor);
      tensor.set_name(constant.name);
      continue;
    }
    const std::uint64_t padding = (kPageBytes - offset % kPageBytes) % kPageBytes;
    data << std::string(padding, '\0') << packed_bytes(constant.value.materialise());
    offset += padding;
    tensor.ParseFromString(tensor_head(constant));
    tensor.set_data_location(TensorProto::EXTERNAL);
    const auto add = [&](const std::string& key, const std::string& value) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    add("location", location);
    add("offset", std::to_string(offset));
    add("length", std::to_string(size));
    offset += size;
  }
  out << whole.SerializeAsString();
}

// ONNX lacks fused groups: inlines them.
Graph without_groups(Graph graph) {
  inline_groups(graph);
  return graph;
}

}  // namespace

void export_onnx(const Graph& graph, const std::string& path, const ExportOptions& options) {
  if (has_groups(graph)) {
    export_onnx(without_groups(graph), path, options);
    return;
  }
  OnnxExporter exporter(graph, options);
  const onnx_schema::ModelProto& model = exporter.run();
  NewFile file(path);
  if (total_bytes(exporter.constants()) <= options.max_embedded_bytes) {
    write_embedded(model, exporter.constants(), file.out());
  } else {
    NewFile data(path + ".data");
    const std::string location = std::filesystem::path(path + ".data").filename();
    write_external(model, exporter.constants(), location, file.out(), data.out());
    data.finish();
  }
  file.finish();
}

std::string export_onnx(const Graph& graph, const ExportOptions& options) {
  if (has_groups(graph)) return export_onnx(without_groups(graph), options);
  OnnxExporter exporter(graph, options);
  const onnx_schema::ModelProto& model = exporter.run();
  if (const std::uint64_t bytes = total_bytes(exporter.constants());
      bytes > options.max_embedded_bytes) {
    throw Error("the weights are too large to be in the model itself", ErrorKind::Usage)
        .expected("at most ", format_bytes(options.max_embedded_bytes))
        .got(format_bytes(bytes))
        .hint("write it to a file");
  }
  std::ostringstream out;
  write_embedded(model, exporter.constants(), out);
  return std::move(out).str();
}

}  // namespace tenon::frontends::onnx
