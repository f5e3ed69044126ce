#pragma once

#include "frontends/relay/export_node.h"
#include "frontends/relay/import_call.h"

#include <span>
#include <string_view>
#include <vector>

// Relay's word and Tenon's for what means the same, both ways.
namespace tenon::relay {

struct PlainAttr {
  std::string_view tenon, relay;

  PlainAttr(const char* name) : tenon(name), relay(name) {}  // NOLINT: both call it that
  PlainAttr(const char* ours, const char* theirs) : tenon(ours), relay(theirs) {}
};

/// An operator of the same operands, but for names.
struct PlainCall {
  enum class Use : std::uint8_t { Both, Read, Written };
  const char *relay, *tenon;
  std::vector<PlainAttr> attrs = {};
  /// Read: one of Relay's other words. Written: what Relay says may also be something else.
  Use use = Use::Both;
};

void add_plain_handlers(Handlers& handlers);
void add_plain_exports(ExportRules& rules);

/// The arguments of an operator on two tensors, which have to be of one type.
std::vector<Var> alike_arguments(const CallImport& call);

}  // namespace tenon::relay
