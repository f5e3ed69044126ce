#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/table.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <nlohmann/json.hpp>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct OpsOptions {
  std::string name;
};

std::string kind_text(const AttrDef& attr) {
  switch (attr.kind) {
    case AttrKind::Bool:
      return "bool";
    case AttrKind::Integer:
      return "integer";
    case AttrKind::Real:
      return "number";
    case AttrKind::Text:
      return "text";
    case AttrKind::Element:
      return "element type";
    case AttrKind::Integers:
      return "integers";
    case AttrKind::Reals:
      return "numbers";
    case AttrKind::Texts:
      return "texts";
    case AttrKind::Constant:
      return "constant";
    case AttrKind::Type:
      return "type";
    case AttrKind::Word:
      break;
  }
  return join(attr.words, " | ");
}

std::string signature(const OpDef& op) {
  std::string text = op.name + "(";
  bool is_first = true;
  for (const OperandDef& operand : op.operands) {
    if (!is_first) text += ", ";
    is_first = false;
    text += operand.name;
    if (operand.is_dynamic_attribute)
      text += " = …";
    else if (operand.is_optional)
      text += "?";
    if (operand.is_variadic) text += "…";
  }
  text += ") -> ";
  is_first = true;
  for (const ResultDef& result : op.results) {
    if (!is_first) text += ", ";
    is_first = false;
    text += result.name + (result.is_optional ? "?" : "") + (result.is_variadic ? "…" : "");
  }
  return text;
}

std::string gradient_text(const OpDef& op) {
  if (op.gradient) return "yes";
  return op.no_gradient_reason.empty() ? "not yet" : "no: " + op.no_gradient_reason;
}

Json to_json(const OpDef& op) {
  Json json = {
      {"name", op.name},          {"summary", op.summary},       {"operands", Json::array()},
      {"results", Json::array()}, {"attributes", Json::array()}, {"bodies", op.bodies}};
  for (const OperandDef& operand : op.operands) {
    json["operands"].push_back({{"name", operand.name},
                                {"optional", operand.is_optional},
                                {"variadic", operand.is_variadic},
                                {"late_attribute", operand.is_dynamic_attribute}});
  }
  for (const ResultDef& result : op.results) {
    json["results"].push_back({{"name", result.name},
                               {"optional", result.is_optional},
                               {"variadic", result.is_variadic}});
  }
  for (const AttrDef& attr : op.attrs) {
    json["attributes"].push_back(
        {{"name", attr.name},
         {"kind", kind_text(attr)},
         {"required", attr.is_required},
         {"default", attr.default_value ? Json(print(*attr.default_value)) : Json()}});
  }
  json["gradient"] = gradient_text(op);
  json["defined_by"] = op.lower ? "expression" : "reference function";
  return json;
}

void print_op(const OpDef& op) {
  out() << signature(op) << "\n  " << op.summary << "\n\n";
  if (!op.attrs.empty()) {
    Table table({"attribute", "kind", "default"});
    for (const AttrDef& attr : op.attrs) {
      const std::string value = attr.default_value ? print(*attr.default_value) : "";
      table.add({attr.name, kind_text(attr), attr.is_required ? "required" : value});
    }
    table.print(out());
    out() << "\n";
  }
  for (const std::string& body : op.bodies) out() << "body graph  " << body << "\n";
  out() << "defined by  " << (op.lower ? "an expression on elements" : "a reference function")
        << "\n"
        << "gradient    " << gradient_text(op) << "\n";
}

int ops(const OpsOptions& options, OutputFormat format) {
  if (!options.name.empty()) {
    const OpDef& op = find_op(options.name);
    if (format == OutputFormat::Json)
      out() << to_json(op).dump(2) << "\n";
    else
      print_op(op);
    return 0;
  }
  if (format == OutputFormat::Json) {
    Json json = Json::array();
    for (const OpDef* op : all_ops().all()) json.push_back(to_json(*op));
    out() << json.dump(2) << "\n";
    return 0;
  }
  Table table({"op", "gradient", "description"});
  for (const OpDef* op : all_ops().all()) {
    table.add({signature(*op),
               op->gradient                     ? "yes"
               : op->no_gradient_reason.empty() ? "not yet"
                                                : "no",
               op->summary});
  }
  table.print(out());
  out() << "\n" << all_ops().all().size() << " operators; `tenon ops NAME` shows one in full\n";
  return 0;
}

}  // namespace

void add_ops(Commands& commands) {
  const auto [app, options] = commands.add<OpsOptions>("ops", "List the operators", ops);
  app.add_option("name", options.name, "details of one operator");
}

}  // namespace tenon::cli
