#include "nests/schedule/reorder.h"

#include "base/error.h"
#include "nests/schedule/loops.h"
#include "nests/stride.h"

#include <algorithm>

namespace tenon::nests {
namespace {

// Returns whether exactly these loops are perfectly nested from here on.
bool are_all(const Statement& outermost, std::vector<std::size_t> loops) {
  for (const Statement* at = &outermost;; at = &at->body.front()) {
    const auto found =
        at->kind == Statement::Kind::Loop ? std::ranges::find(loops, at->id) : loops.end();
    if (found == loops.end()) return false;
    loops.erase(found);
    if (loops.empty()) return true;
    if (at->body.size() != 1) return false;
  }
}

// Consecutive loops may share ids.
Statement* outermost_of(Block& block, const std::vector<std::size_t>& loops) {
  for (Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    if (are_all(statement, loops)) return &statement;
    if (Statement* found = outermost_of(statement.body, loops)) return found;
  }
  return nullptr;
}

bool is_free_fold(const Block& body) {
  return body.size() == 1 && body.front().kind == Statement::Kind::Fold &&
         !body.front().place.is_defined() && body.front().reduction != Reduction::Last;
}

}  // namespace

void reorder(Block& block, const std::vector<std::size_t>& loops) {
  if (loops.size() < 2) return;
  Statement* top = outermost_of(block, loops);
  TENON_ASSERT(top != nullptr, "loops that change places stand directly in each other");
  std::vector<Statement> headers(loops.size());
  Statement* at = top;
  std::size_t independent = 0;
  for (std::size_t k = 0; k < loops.size(); ++k) {
    const auto index = static_cast<std::size_t>(std::ranges::find(loops, at->id) - loops.begin());
    headers[index] = header_of(*at);
    independent += at->is_independent;
    if (k + 1 < loops.size()) at = &at->body.front();
  }
  Block body = std::move(at->body);
  TENON_ASSERT(independent == loops.size() || (independent == 0 && is_free_fold(body)),
               "the order of the passes is free");
  for (std::size_t k = 0; k < headers.size(); ++k) {
    for (std::size_t inner = k; headers[k].limit.is_defined() && inner < headers.size(); ++inner) {
      TENON_ASSERT(!depends_on(headers[k].limit, headers[inner].id),
                   "a limit depends on loops around it");
    }
  }
  for (std::size_t k = headers.size(); k-- > 0;) {
    headers[k].body = std::move(body);
    body.clear();
    if (k > 0) body.push_back(std::move(headers[k]));
  }
  *top = std::move(headers.front());
}

}  // namespace tenon::nests
