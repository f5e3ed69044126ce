#pragma once

#include "frontends/chainer/functions.h"
#include "ir/graph.h"

namespace tenon::chainer {

/// Records for operators that Chainer has no function for. `_tenon` names the operator; `_operands`
/// has an entry for each of its operands: the position of an input of the record, the text of a
/// constant, or null for an optional one that is missing; `_results` likewise has the position of
/// an output for each result, where some are not computed. The operator's own attributes stand
/// beside these.
constexpr std::string_view kOwnOperands = "_operands", kOwnResults = "_results",
                           kOwnBodies = "_bodies";
/// The place of each output among the outputs of the graph, or null, where that does not follow.
constexpr std::string_view kGraphOutputs = "_graph_outputs";

/// Appends the node of such a record. `inputs` are those of the record, in its order.
std::vector<Var> build_own(const FunctionView& view, Builder& build,
                           const std::vector<Var>& inputs);

/// An attribute's value as JSON, and back from an attribute of that kind. Nothing where JSON has no
/// word for it (an extent that is a symbol).
std::optional<Json> json_of(const AttrValue& value);
std::optional<AttrValue> attr_of(const Json& json, const AttrDef& def);

}  // namespace tenon::chainer
