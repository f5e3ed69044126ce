#include "documents/relay/claims.h"

#include "base/text_place.h"
#include "documents/relay/types.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

constexpr std::size_t kShownLine = 120;

// Replaces parts of the inferred type by wildcards (`?`, `_`, a type parameter) of the claim,
// before the comparison.
void leave_open(RelayType& type, const RelayType& says) {
  if (says.kind == RelayType::Kind::Incomplete || says.kind == RelayType::Kind::Named) {
    type = says;
    return;
  }
  if (says.kind != type.kind) return;
  for (std::size_t k = 0; k < std::min(type.dims.size(), says.dims.size()); ++k) {
    if (says.dims[k] == RelayType::kAnyExtent) type.dims[k] = says.dims[k];
  }
  for (std::size_t k = 0; k < std::min(type.parts.size(), says.parts.size()); ++k)
    leave_open(type.parts[k], says.parts[k]);
}

}  // namespace

std::optional<RelayType> type_of(const ImportedValue& meaning) {
  if (meaning.kind == ImportedValue::Kind::Function) return std::nullopt;
  if (meaning.kind == ImportedValue::Kind::Value) {
    if (!meaning.value.is_valid()) return std::nullopt;
    const Type& type = meaning.value.builder().type(meaning.value);
    return type.is_tensor() ? std::optional<RelayType>(to_relay(type.tensor())) : std::nullopt;
  }
  std::vector<RelayType> parts;
  for (const ImportedValue& field : meaning.fields) {
    const std::optional<RelayType> part = type_of(field);
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  return RelayType::tuple(std::move(parts));
}

std::string Claims::place(std::size_t position) const {
  return text_place(source_, text_, position);
}

Error Claims::at(std::size_t position, Error error) const {
  error.at(place(position));
  return error;
}

void Claims::expr(const RelayExpr& expr, const ImportedValue& made) {
  if (expr.type) type("type comment", expr.type_position, *expr.type, made);
}

void Claims::type(std::string_view what, std::size_t position, const RelayType& says,
                  const ImportedValue& made) {
  if (findings_ == nullptr || says.kind == RelayType::Kind::Incomplete) return;
  std::optional<RelayType> should_be = type_of(made);
  if (!should_be) return;
  leave_open(*should_be, says);
  compare(what, position, to_string(says), to_string(*should_be));
}

void Claims::attribute(std::string_view what, std::size_t position, const std::string& says,
                       const std::string& should_be) {
  if (findings_ != nullptr) return compare(what, position, says, should_be);
  if (says == should_be) return;
  throw Error(concat("the ", what, " is not what follows from the arguments"))
      .expected(should_be)
      .got(says);
}

void Claims::compare(std::string_view what, std::size_t position, const std::string& says,
                     const std::string& should_be) {
  if (says == should_be && !claimed_.insert(position).second) return;
  findings_->compare(
      what, [&] { return place(position); }, says, should_be);
}

void Claims::misfit(const RelayExpr& call, const Error& error) {
  const std::size_t end = std::min(text_.find('\n', call.position), text_.size());
  const std::string_view line =
      text_.substr(call.position, std::min(end - call.position, kShownLine));
  findings_->miss("operator fits its arguments", place(call.position), std::string(line),
                  error.summary());
}

}  // namespace tenon::documents::relay
