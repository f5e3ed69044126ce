#include "base/text.h"
#include "documents/megengine/check_parts.h"
#include "documents/megengine/vocabulary.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace tenon::documents::megengine {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Numbers above all numbers of this graph are stale: they belong to the graph that this one was
// made from, and names keep them.
std::string without_stale_numbers(std::string_view name, ItemId largest) {
  std::string text;
  for (std::size_t k = 0; k < name.size(); ++k) {
    text += name[k];
    if (name[k] != '[') continue;
    std::size_t end = k + 1;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end == k + 1 || end >= name.size() || name[end] != ']') continue;
    const auto number = parse_integer(name.substr(k + 1, end - k - 1));
    if (number && *number <= largest) continue;
    text += '?';
    k = end - 1;
  }
  return text;
}

// Replaces numbers of the expected name by the stale numbers at the same positions of `name`.
std::string as_stale(std::string_view expected, std::string_view name) {
  std::string text;
  std::size_t at = 0;
  for (std::size_t k = 0; k < name.size() && at < expected.size(); ++k) {
    if (name[k] == '?' && expected[at] != '?') {
      text += '?';
      while (at < expected.size() && is_digit(expected[at])) ++at;
    } else {
      text += expected[at++];
    }
  }
  text += expected.substr(at);
  return text;
}

std::string start_of(std::string_view name) {
  return std::string(name.substr(0, name.find_first_of("([{<")));
}

bool is_commutative(std::string_view mode) {
  return mode == "ADD" || mode == "MUL" || mode == "MAX" || mode == "MIN" || mode == "EQ" ||
         mode == "AND" || mode == "OR" || mode == "XOR" || mode.starts_with("FUSE_ADD_");
}

class NameCheck {
 public:
  explicit NameCheck(const CheckContext& context) : context_(context) {
    for (const VarNode& var : context.vars()) largest_ = std::max(largest_, var.id);
    for (const Operator& opr : context.operators()) largest_ = std::max(largest_, opr.id);
  }

  void check_operator(std::size_t opr) const {
    const Operator& node = context_.operators()[opr];
    const OprFootprint* footprint = context_.index.footprint[opr];
    const Param param(footprint ? &footprint->param : nullptr);
    std::optional<std::string> start = default_name(node, param);
    if (node.type == "ImmutableTensor" && node.name.starts_with("const") &&
        !context_.index.outputs[opr].empty()) {
      const std::size_t var = context_.index.outputs[opr].front();
      const auto* value = stated_value(context_.vars()[var]);
      const bool has_value = value && value->size() == 1;
      // An element too large to be listed is left unchecked.
      start = count_of(context_.facts[var].shape) == 1 && !has_value
                  ? node.name.substr(0, std::min(node.name.find('['), node.name.size()))
                  : constant_name(context_.facts[var].shape,
                                  has_value ? std::optional(value->front()) : std::nullopt);
    } else if (!start) {
      // Without a known default, a name that contains its own number is a default name.
      if (!node.name.ends_with(concat("[", node.id, "]"))) return;
      start = start_of(node.name);
    } else if (start_of(node.name) != *start || node.name == *start) {
      return;  // user-given name
    }
    std::vector<const std::string*> inputs;
    for (std::size_t var : context_.index.inputs[opr]) inputs.push_back(&context_.vars()[var].name);
    if (const auto count = named_inputs(node.type); count && inputs.size() > *count)
      inputs.resize(*count);
    const std::string plain = without_stale_numbers(node.name, largest_);
    std::string expected = as_stale(full_name(*start, inputs, node.id), plain);
    // Commutative operands are sorted by number, but the name lists them in call order.
    if (expected != plain && node.type == "Elemwise" && is_commutative(*start) &&
        inputs.size() == 2) {
      std::swap(inputs[0], inputs[1]);
      const std::string swapped = as_stale(full_name(*start, inputs, node.id), plain);
      if (swapped == plain) expected = swapped;
    }
    // Some unknown types name fewer inputs.
    for (const std::size_t count : {std::size_t{1}, std::size_t{0}}) {
      if (expected == plain || named_inputs(node.type) || default_name(node, param) ||
          inputs.size() <= count)
        break;
      const std::string shorter =
          as_stale(full_name(*start, std::span(inputs).first(count), node.id), plain);
      if (shorter == plain) expected = shorter;
    }
    context_.findings.compare(
        "names of operators", [&] { return operator_path(node) + ".name"; }, plain, expected);
  }

  bool is_stale(std::string_view name) const {
    return without_stale_numbers(name, largest_).ends_with("[?]");
  }

  void check_outputs(std::size_t opr) const {
    const Operator& node = context_.operators()[opr];
    for (std::size_t k = 0; k < node.output.size(); ++k) {
      const VarNode& var = context_.vars()[context_.index.outputs[opr][k]];
      const auto place = [&] { return var_path(var) + ".name"; };
      const std::size_t colon = var.name.rfind(':');
      if (is_workspace(var)) {
        context_.findings.compare("names of vars", place, var.name, node.name + ":workspace");
      } else if (var.name != node.name &&
                 (var.name.find('[') == std::string::npos || is_stale(var.name))) {
        continue;  // user-given, or from the graph that this one was made from
      } else {
        const bool has_suffix =
            colon != std::string::npos && var.name.find(']', colon) == std::string::npos;
        context_.findings.compare("names of vars", place,
                                  has_suffix ? var.name.substr(0, colon) : var.name, node.name);
      }
    }
  }

 private:
  const CheckContext& context_;
  ItemId largest_ = 0;
};

// A member that nearly all objects of a kind have is required of all.
template <class List, class Path>
void check_members(const CheckContext& context, const List& list, const Path& path) {
  std::map<std::string, std::size_t> counts;
  for (const auto& object : list) {
    for (const std::string& name : context.profile.orders.names(object.order)) ++counts[name];
  }
  for (const auto& object : list) {
    for (const auto& [name, count] : counts) {
      // The end of an address is present if the address is.
      if (count * 20 < list.size() * 19 || name == "prev_dev_ptr_end") continue;
      context.findings.require(
          context.profile.has(object, name), "members", [&] { return path(object); },
          concat("no '", name, "'"), concat("'", name, "', as the others have"));
    }
  }
}

}  // namespace

void check_names(const CheckContext& context) {
  if (context.vars().size() >= 20) {
    check_members(context, context.vars(), [](const VarNode& var) { return var_path(var); });
    check_members(context, context.operators(),
                  [](const Operator& opr) { return operator_path(opr); });
  }
  const NameCheck check(context);
  for (std::size_t opr = 0; opr < context.operators().size(); ++opr) {
    check.check_operator(opr);
    check.check_outputs(opr);
  }
}

}  // namespace tenon::documents::megengine
