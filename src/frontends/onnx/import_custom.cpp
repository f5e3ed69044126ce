#include "frontends/onnx/import_custom.h"

#include "base/error.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <nlohmann/json.hpp>

namespace tenon::frontends::onnx {
namespace {

using Json = nlohmann::ordered_json;

template <class List>
Json list_of(const List& list) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(item);
  return json;
}

}  // namespace

void import_custom(NodeImport& import, const onnx_schema::NodeProto& node,
                   const std::string& name) {
  using onnx_schema::AttributeProto;
  Json attributes = Json::object();
  for (const AttributeProto& attribute : node.attribute()) {
    Json& value = attributes[attribute.name()];
    switch (attribute.type()) {
      case AttributeProto::INT:
        value = attribute.i();
        break;
      case AttributeProto::FLOAT:
        value = attribute.f();
        break;
      case AttributeProto::STRING:
        value = attribute.s();
        break;
      case AttributeProto::INTS:
        value = list_of(attribute.ints());
        break;
      case AttributeProto::FLOATS:
        value = list_of(attribute.floats());
        break;
      case AttributeProto::STRINGS:
        value = list_of(attribute.strings());
        break;
      default:
        import.unsupported(
            concat("attribute '", attribute.name(), "': plug-ins get numbers, texts and lists"));
    }
  }
  std::vector<Var> operands;
  for (std::size_t k = 0; k < import.input_count(); ++k) operands.push_back(import.input(k));
  const std::size_t count = import.output_count();
  const std::string text = attributes.dump(-1, ' ', false, Json::error_handler_t::replace);
  import.outputs(import.build.call_all("custom", operands,
                                       std::vector<Attr>{{"op", name},
                                                         { "attributes",
                                                           text }},
                                       import.output_names(count)));
}

}  // namespace tenon::frontends::onnx
