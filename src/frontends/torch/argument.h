#pragma once

#include "base/error.h"
#include "frontends/json.h"

#include <string_view>
#include <utility>

namespace tenon::frontends::torch {

/// Returns the kind and the value of a tagged value, an object with one member: {"as_int": 3}.
inline std::pair<std::string_view, JsonReader> tagged(const JsonReader& argument) {
  const auto members = argument.members();
  if (members.size() != 1) throw argument.error("an argument has one kind");
  return members.front();
}

}  // namespace tenon::frontends::torch
