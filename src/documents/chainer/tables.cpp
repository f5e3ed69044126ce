#include "documents/chainer/tables.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::documents::chainer {
namespace {

// An empty list occupies one line, except for the outputs of a backward record.
std::size_t lines_for(std::size_t count) { return count == 0 ? 1 : count; }
std::size_t first_input_line(const Function& function) { return function.line + 2; }
std::size_t first_output_line(const Function& function) {
  return first_input_line(function) + lines_for(function.inputs.size());
}
std::size_t name_line(const Function& function) {
  const bool is_backward = !function.inputs.empty() && function.inputs[0].tag != Tag::Value;
  return first_output_line(function) +
         (is_backward ? function.outputs.size() : lines_for(function.outputs.size()));
}

}  // namespace

bool Variable::is_input() const {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

const ChainerAttribute* Function::find(std::string_view attribute) const {
  for (const ChainerAttribute& each : attributes) {
    if (each.name == attribute) return &each;
  }
  return nullptr;
}

std::vector<std::size_t> producers_of(const Tables& tables) {
  std::vector<std::size_t> producers(tables.variables.size(), kNone);
  for (std::size_t k = 0; k < tables.forward.size(); ++k) {
    for (const std::size_t output : tables.forward[k].outputs) producers[output] = k;
  }
  return producers;
}

std::vector<std::size_t> topological_order(const Tables& tables) {
  const std::vector<std::size_t> producers = producers_of(tables);
  std::vector<std::vector<std::size_t>> readers(tables.forward.size());
  std::vector<std::size_t> missing(tables.forward.size(), 0);
  for (std::size_t k = 0; k < tables.forward.size(); ++k) {
    for (const Input& input : tables.forward[k].inputs) {
      if (producers[input.variable] == kNone) continue;
      readers[producers[input.variable]].push_back(k);
      ++missing[k];
    }
  }
  std::vector<std::size_t> order, depth, next;
  for (std::size_t k = 0; k < missing.size(); ++k) {
    if (missing[k] == 0) depth.push_back(k);
  }
  while (!depth.empty()) {
    next.clear();
    for (const std::size_t k : depth) {
      order.push_back(k);
      for (const std::size_t reader : readers[k]) {
        if (--missing[reader] == 0) next.push_back(reader);
      }
    }
    std::sort(next.begin(), next.end());
    depth.swap(next);
  }
  return order;
}

std::vector<std::size_t> operands_of(const Tables& tables, std::size_t forward) {
  std::vector<std::size_t> listed, given;
  for (const Input& input : tables.forward[forward].inputs) listed.push_back(input.variable);
  for (const Input& input : tables.backward[forward].inputs) {
    if (input.tag == Tag::Input) given.push_back(input.variable);
  }
  if (given.size() <= listed.size()) return listed;
  const std::unordered_set<std::size_t> known(listed.begin(), listed.end());
  for (const std::size_t variable : given) {
    if (!known.contains(variable)) return listed;
  }
  return given;
}

std::string place_of(std::size_t line, std::size_t column) {
  return concat("line ", line, ", column ", column);
}

std::string place_of_bytes(const Tables& tables, std::size_t variable) {
  return place_of(line_of_variable(variable),
                  std::to_string(tables.variables[variable].id).size() + 2);
}

std::string place_of_input(const Function& function, std::size_t input) {
  return place_of(first_input_line(function) + input, 1);
}

std::string place_of_output(const Function& function, std::size_t output) {
  return place_of(first_output_line(function) + output, 1);
}

std::string place_of_name(const Function& function) { return place_of(name_line(function), 1); }

std::string place_of_attribute(const Function& function, std::string_view attribute) {
  const ChainerAttribute* found = function.find(attribute);
  return place_of(name_line(function) + 1,
                  found == nullptr || found->column == 0 ? 1 : found->column);
}

}  // namespace tenon::documents::chainer
