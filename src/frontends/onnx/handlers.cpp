#include "frontends/onnx/export_node.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/plain_ops.h"

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

using HandlerList = std::span<const Handler> (*)();
constexpr HandlerList handler_lists[] = {
    elementwise_handlers,
    quantize_handlers,
    shape_handlers,
    indexing_handlers,
    contraction_handlers,
    pooling_handlers,
    normalization_handlers,
    attention_handlers,
    recurrent_handlers,
    control_handlers,
    sequence_handlers,
    text_handlers,
    random_handlers,
    signal_handlers,
    training_handlers,
    ml_handlers,
    tree_handlers,
    svm_handlers,
    microsoft_handlers,
    microsoft_attention_handlers,
    microsoft_quantized_handlers,
};

using RuleList = std::span<const ExportRule> (*)();
constexpr RuleList rule_lists[] = {
    elementwise_export_rules, shape_export_rules,   contraction_export_rules,
    reduction_export_rules,   control_export_rules, normalization_export_rules,
};

bool is_before(const Handler& a, const Handler& b) {
  return std::pair(a.domain, a.op_type) < std::pair(b.domain, b.op_type);
}

}  // namespace

const Handler* find_handler(std::string_view domain, std::string_view op_type) {
  static const std::vector<Handler> sorted = [] {
    std::vector<Handler> all;
    for (HandlerList list : handler_lists) all.insert(all.end(), list().begin(), list().end());
    for (const PlainOp& plain : plain_ops()) {
      const auto is_it = [&](const Handler& each) {
        return each.op_type == plain.op_type && each.domain == plain.domain;
      };
      if (std::ranges::none_of(all, is_it))
        all.push_back({plain.op_type, import_plain, plain.domain});
    }
    std::ranges::sort(all, is_before);
    return all;
  }();
  if (domain == "ai.onnx") domain = "";
  const Handler wanted{op_type, nullptr, domain};
  const auto found = std::ranges::lower_bound(sorted, wanted, is_before);
  return found != sorted.end() && !is_before(wanted, *found) ? &*found : nullptr;
}

const ExportRule* find_export_rule(std::string_view op) {
  static const std::vector<ExportRule> sorted = [] {
    std::vector<ExportRule> all;
    for (RuleList list : rule_lists) all.insert(all.end(), list().begin(), list().end());
    for (const PlainOp& plain : plain_ops()) {
      if (std::ranges::find(all, plain.op, &ExportRule::op) == all.end())
        all.push_back({plain.op, write_plain});
    }
    std::ranges::sort(all, {}, &ExportRule::op);
    return all;
  }();
  const auto found = std::ranges::lower_bound(sorted, op, {}, &ExportRule::op);
  return found != sorted.end() && found->op == op ? &*found : nullptr;
}

}  // namespace tenon::frontends::onnx
