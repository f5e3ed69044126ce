#include "documents/relay/region.h"

#include "base/error.h"
#include "ir/graph.h"

namespace tenon::documents::relay {

Var Region::local(Var value) {
  if (&value.builder() == &builder_) return value;
  TENON_ASSERT(around_ != nullptr, "a value comes from a graph around this one");
  return capture(around_->local(value));
}

Var Region::capture(Var outer) {
  const auto known = inputs_.find(outer.id());
  if (known != inputs_.end()) return known->second;
  const Graph& around = around_->builder().graph();
  const Value& value = around.value(ValueId(outer.id()));
  const Var input = builder_.input(builder_.graph().free_name(value.name), value.type);
  inputs_[outer.id()] = input;
  captured_.push_back(outer);
  return input;
}

void Region::capture_all(const Region& other) {
  for (const Var outer : other.captured_) capture(outer);
}

Var Region::find_constant(ExprId constant) const {
  const auto found = constants_.find(constant);
  return found == constants_.end() ? Var() : found->second;
}

}  // namespace tenon::documents::relay
