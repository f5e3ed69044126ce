#pragma once

#include "documents/relay/ast.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::documents::relay {

/// Name bindings during parsing: variables and numbered lines, each visible until the end of its
/// block.
class Scopes {
 public:
  struct Bound {
    ExprId expr;
    std::size_t position = 0;
    /// number of open blocks
    std::size_t depth = 0;
  };

  void open(BlockId block) { open_.push_back({block, {}, {}}); }
  void close();
  BlockId block() const { return open_.empty() ? BlockId() : open_.back().block; }
  std::size_t depth() const { return open_.size(); }

  /// A variable may shadow another of its name.
  void declare(const std::string& name, ExprId variable);
  ExprId find_variable(const std::string& name) const;
  void bind(std::int64_t number, Bound bound);
  const Bound* find_number(std::int64_t number) const;

  /// Begins an if or function; ends with the list of outer lines that it captured, each once.
  void open_owner() { owners_.push_back({open_.size(), {}, {}}); }
  std::vector<ExprId> close_owner();
  void note_use(const Bound& bound);

 private:
  struct Open {
    BlockId block;
    std::vector<std::string> variables;
    std::vector<std::int64_t> numbers;
  };
  struct Owner {
    std::size_t depth = 0;
    std::vector<ExprId> captures;
    std::unordered_set<ExprId> seen;
  };
  std::vector<Open> open_;
  std::vector<Owner> owners_;
  std::unordered_map<std::string, std::vector<ExprId>> variables_;
  std::unordered_map<std::int64_t, Bound> numbers_;
};

}  // namespace tenon::documents::relay
