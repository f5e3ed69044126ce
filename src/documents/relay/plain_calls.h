#pragma once

#include "documents/relay/export_node.h"
#include "documents/relay/import_call.h"

#include <span>
#include <string_view>
#include <vector>

// Equivalent operators of Relay and Tenon, for both directions.
namespace tenon::documents::relay {

struct PlainArgument {
  std::string_view tenon, relay;

  PlainArgument(const char* name) : tenon(name), relay(name) {}  // NOLINT: both call it that
  PlainArgument(const char* ours, const char* theirs) : tenon(ours), relay(theirs) {}
};

/// An operator with equal operands up to names.
struct PlainCall {
  enum class Use : std::uint8_t { Both, Read, Written };
  const char *relay, *tenon;
  std::vector<PlainArgument> attrs = {};
  /// Read: a synonym in Relay. Written: Relay's operator has other meanings as well.
  Use use = Use::Both;
};

void add_plain_handlers(Handlers& handlers);
void add_plain_exports(ExportRules& rules);

/// Returns the arguments of a binary operator, which must have one type.
std::vector<Var> alike_arguments(const CallImport& call);

}  // namespace tenon::documents::relay
