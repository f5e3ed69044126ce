#include "program/routine.h"

#include "base/error.h"

namespace tenon {
namespace {

std::string list_of(const std::vector<std::uint32_t>& slots) {
  std::string text;
  for (const std::uint32_t slot : slots) text += concat(text.empty() ? "%" : ", %", slot);
  return text;
}

std::string indented(std::string_view text, const std::string& indent) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    result += concat(indent, text.substr(begin, end - begin), "\n");
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string to_string(const Routine& routine) {
  std::string text = concat("routine (", list_of(routine.inputs), ") {\n");
  for (const Routine::Step& step : routine.steps) {
    text += concat("  ", list_of(step.results), " = ");
    switch (step.kind) {
      case Routine::Step::Kind::Part: text += concat("part ", step.part, "(", list_of(step.operands), ")\n"); break;
      case Routine::Step::Kind::Scan:
        text += concat("scan part ", step.part, "(", list_of(step.operands), ") {states = ", step.state_count,
                       ", inputs = ", step.input_count, "}\n");
        break;
      case Routine::Step::Kind::Operators:
        text += concat("operators (", list_of(step.operands), ")\n", indented(step.graph, "    "));
        for (const Routine& body : step.bodies) text += indented(to_string(body), "    ");
        break;
    }
  }
  return concat(text, "  return ", list_of(routine.outputs), "\n}\n");
}

}  // namespace tenon
