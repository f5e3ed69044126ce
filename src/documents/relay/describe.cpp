#include "documents/relay/describe.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/relay/printer.h"
#include "documents/relay/types.h"

#include <algorithm>
#include <map>

namespace tenon::documents::relay {
namespace {

constexpr std::size_t kMostRows = 12;

struct OperatorCount {
  std::size_t calls = 0;
  double elements = 0;  // of the results
  std::string example;
};

double element_count(const RelayType& type) {
  if (type.kind == RelayType::Kind::Tuple)
    return type.parts.empty() ? 0 : element_count(type.parts.front());
  double count = type.kind == RelayType::Kind::Tensor ? 1 : 0;
  for (const std::int64_t extent : type.dims)
    count *= extent == RelayType::kAnyExtent ? 1 : static_cast<double>(extent);
  return count;
}

struct Survey {
  std::map<std::string, OperatorCount> operators;
  std::size_t calls = 0, typed_calls = 0, named_calls = 0, constants = 0, scalars = 0,
              functions = 0, branches = 0, lets = 0;
  double weights = 0, weight_bytes = 0;
  std::map<std::string, std::size_t> scopes;  // leading parts of the framework's names
};

// Names are nested scopes a/b/c. The first two parts identify the network's blocks.
std::string scope_of(const std::string& name) {
  std::size_t end = name.find('/');
  if (end != std::string::npos) end = name.find('/', end + 1);
  return end == std::string::npos ? name : name.substr(0, end);
}

void count_call(const RelayModule& module, const RelayExpr& expr, Survey& survey) {
  ++survey.calls;
  survey.typed_calls += expr.type.has_value();
  if (!expr.span.is_empty()) {
    ++survey.named_calls;
    ++survey.scopes[scope_of(expr.span.name)];
  }
  const RelayExpr& callee = module.at(expr.parts[0]);
  const std::string name = callee.kind == RelayExpr::Kind::Operator ? callee.name
                           : callee.kind == RelayExpr::Kind::Global ? "@" + callee.name
                                                                    : "(a function)";
  OperatorCount& count = survey.operators[name];
  ++count.calls;
  if (expr.type) {
    count.elements += element_count(*expr.type);
    if (count.example.empty()) count.example = to_string(*expr.type);
  }
}

void count_expr(const RelayModule& module, const RelayExpr& expr, Survey& survey) {
  survey.functions += expr.kind == RelayExpr::Kind::Function;
  survey.branches += expr.kind == RelayExpr::Kind::If;
  survey.lets += expr.kind == RelayExpr::Kind::Let;
  survey.scalars += expr.kind == RelayExpr::Kind::Scalar;
  if (expr.kind == RelayExpr::Kind::Call) count_call(module, expr, survey);
  if (expr.kind != RelayExpr::Kind::Constant) return;
  ++survey.constants;
  if (!expr.type) return;
  const double elements = element_count(*expr.type);
  survey.weights += elements;
  const std::optional<DType> dtype = to_dtype(expr.type->dtype);
  survey.weight_bytes += elements * (dtype ? info(*dtype).bits : 32) / 8.0;
}

Survey survey_of(const RelayModule& module) {
  Survey survey;
  std::vector<bool> is_seen(module.exprs.size());
  std::vector<ExprId> open;
  const auto use = [&](ExprId id) {
    if (is_seen[id.index()]) return;
    is_seen[id.index()] = true;
    open.push_back(id);
  };
  for (const GlobalFunction& function : module.functions) use(function.function);
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    for (const ExprId part : module.at(id).parts) use(part);
  }
  for (std::size_t k = 0; k < module.exprs.size(); ++k) {
    if (is_seen[k]) count_expr(module, module.exprs[k], survey);
  }
  return survey;
}

Page::Section signature(const RelayModule& module) {
  Page::Section section{"Functions", "", {"function", "parameter", "type"}, {}};
  for (const GlobalFunction& global : module.functions) {
    const RelayExpr& function = module.at(global.function);
    const std::string name = global.name.empty() ? "fn" : "@" + global.name;
    for (const ExprId id : function.parameters) {
      const RelayExpr& parameter = module.at(id);
      if (section.rows.size() >= 2 * kMostRows) break;
      section.rows.push_back(
          {name, "%" + parameter.name,
           parameter.annotation ? to_string(*parameter.annotation) : "not said"});
    }
    section.rows.push_back(
        {name, "gives", function.annotation ? to_string(*function.annotation) : "not said"});
  }
  return section;
}

Page::Section operators(const Survey& survey) {
  std::vector<std::pair<std::string, OperatorCount>> order(survey.operators.begin(),
                                                           survey.operators.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  Page::Section section{
      "Operators", "", {"operator", ">calls", ">elements of results", "the first result"}, {}};
  for (const auto& [name, count] : order) {
    if (section.rows.size() == kMostRows) {
      section.rows.push_back({concat("and ", order.size() - kMostRows, " more"), "", "", ""});
      break;
    }
    section.rows.push_back(
        {name, std::to_string(count.calls),
         Page::Cell(format_count(count.elements), static_cast<double>(count.elements)),
         count.example});
  }
  return section;
}

Page::Section scopes(const Survey& survey) {
  std::vector<std::pair<std::string, std::size_t>> order(survey.scopes.begin(),
                                                         survey.scopes.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Page::Section section{
      "Names from the framework's model",
      concat(survey.named_calls, " of ", survey.calls,
             " calls still carry the name of the node they came from. A pass that builds a call "
             "anew loses it, so what has none was rewritten."),
      {"scope", ">calls"},
      {}};
  for (const auto& [name, count] : order) {
    if (section.rows.size() == kMostRows) break;
    section.rows.push_back({name, std::to_string(count)});
  }
  return section;
}

Page::Section sections_of_int8(const Survey& survey) {
  const auto calls = [&](const char* name) {
    const auto found = survey.operators.find(name);
    return found == survey.operators.end() ? std::size_t{0} : found->second.calls;
  };
  const std::size_t hints = calls("annotation.cast_hint"), stops = calls("annotation.stop_fusion");
  std::string text = concat(
      "The program is cut into sections for 8-bit arithmetic: ", hints,
      " times a value that leaves a section is marked with the type it may be held in "
      "(annotation.cast_hint), and ",
      stops,
      " times kernels are kept apart there (annotation.stop_fusion). Both give the value itself.");
  return {"Partition for quantization", std::move(text), {}, {}};
}

}  // namespace

Page describe_module(const RelayModule& module) {
  const Survey survey = survey_of(module);
  Numbering numbering;
  print_module(module, module.style, &numbering);
  Page page;
  page.title = "Relay program";
  std::string about = concat(
      "A neural network as TVM's intermediate language Relay prints it: a function whose lines "
      "each call one operator. ",
      survey.calls, " calls on ", numbering.lines.size(), " numbered lines, ", survey.constants,
      " constants (", format_count(survey.weights), " numbers, ",
      format_bytes(static_cast<std::uint64_t>(survey.weight_bytes)), "), ", survey.scalars,
      " literals");
  if (survey.branches > 0) about += concat(", ", survey.branches, " branches");
  if (survey.lets > 0) about += concat(", ", survey.lets, " lets");
  if (survey.functions > module.functions.size())
    about += concat(", ", survey.functions - module.functions.size(), " function literals");
  about += module.metadata ? ". The constants' elements are in the metadata section."
                           : ". The constants' elements are not in the text: Tenon makes numbers "
                             "up, the same each time.";
  page.sections.push_back({"What this is", about, {}, {}});
  page.sections.push_back(signature(module));
  page.sections.push_back(operators(survey));
  if (survey.operators.contains("annotation.cast_hint"))
    page.sections.push_back(sections_of_int8(survey));
  if (!survey.scopes.empty()) page.sections.push_back(scopes(survey));
  page.sections.push_back(
      {"How to read it",
       "",
       {"in the text", "means"},
       {{"%x", "a parameter or a variable of a let"},
        {"%12 = …;",
         "a line: its value may be read by several others. Lines appear when first read"},
        {"meta[relay.Constant][3]",
         "a constant by its place in the metadata, numbered in the order of use"},
        {"/* ty=… */",
         "the type that the compiler inferred: extents, element type; `?` is known at run time"},
        {"/* a/b/Relu */", "the node of the framework's model that the call came from"},
        {"name=value", "an attribute; those at their default are left out"}}});
  return page;
}

}  // namespace tenon::documents::relay
