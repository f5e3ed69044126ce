#include "passes/definition/pass.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <vector>

namespace tenon::passes {

// TENON_PASS(function), or TENON_PASS(function, Accuracy) for a pass that does more or less than
// round.
#define TENON_PASS(id, ...) Graph id(Graph graph, const PassOptions& options);
#include "passes/list.inc"
#undef TENON_PASS

namespace {

std::string with_hyphens(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

std::span<const Pass> all_passes() {
  static const std::vector<Pass> passes = {
#define TENON_PASS(id, ...) {with_hyphens(#id), id __VA_OPT__(, Accuracy::__VA_ARGS__)},
#include "passes/list.inc"
#undef TENON_PASS
  };
  return passes;
}

const Pass& find_pass(std::string_view name) {
  std::vector<std::string> known;
  for (const Pass& pass : all_passes()) {
    if (pass.name == name) return pass;
    known.emplace_back(pass.name);
  }
  throw Error(concat("no pass is called '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name, known));
}

}  // namespace tenon::passes
