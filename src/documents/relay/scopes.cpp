#include "documents/relay/scopes.h"

namespace tenon::documents::relay {

void Scopes::close() {
  for (const std::string& name : open_.back().variables) variables_[name].pop_back();
  for (const std::int64_t number : open_.back().numbers) numbers_.erase(number);
  open_.pop_back();
}

void Scopes::declare(const std::string& name, ExprId variable) {
  variables_[name].push_back(variable);
  open_.back().variables.push_back(name);
}

ExprId Scopes::find_variable(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() || found->second.empty() ? ExprId() : found->second.back();
}

void Scopes::bind(std::int64_t number, Bound bound) {
  numbers_[number] = bound;
  open_.back().numbers.push_back(number);
}

const Scopes::Bound* Scopes::find_number(std::int64_t number) const {
  const auto found = numbers_.find(number);
  return found == numbers_.end() ? nullptr : &found->second;
}

std::vector<ExprId> Scopes::close_owner() {
  std::vector<ExprId> captures = std::move(owners_.back().captures);
  owners_.pop_back();
  return captures;
}

void Scopes::note_use(const Bound& bound) {
  for (Owner& owner : owners_) {
    if (bound.depth > owner.depth) continue;
    if (owner.seen.insert(bound.expr).second) owner.captures.push_back(bound.expr);
  }
}

}  // namespace tenon::documents::relay
