#pragma once

#include "base/error.h"
#include "frontends/findings.h"
#include "frontends/relay/import_call.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tenon::relay {

/// The type of what an expression means; nothing for a function or a type known at run time only.
std::optional<RelayType> type_of(const Meaning& meaning);

/// What a text says about types and extents, beside what follows from its operators. Without
/// findings to take them, comments count for nothing and an attribute that is wrong is an Error.
class Claims {
 public:
  Claims(std::string_view text, std::string_view source, Findings* findings)
      : text_(text), source_(source), findings_(findings) {}

  bool are_wanted() const { return findings_ != nullptr; }
  std::string place(std::size_t position) const;
  /// The error, at a position.
  Error at(std::size_t position, Error error) const;

  void expr(const Expr& expr, const Meaning& made);
  void type(std::string_view what, std::size_t position, const RelayType& says,
            const Meaning& made);
  /// Each place in the text claims once, however often a function is inlined.
  void attribute(std::string_view what, std::size_t position, const std::string& says,
                 const std::string& should_be);
  /// A call that does not fit its arguments.
  void misfit(const Expr& call, const Error& error);

 private:
  void compare(std::string_view what, std::size_t position, const std::string& says,
               const std::string& should_be);

  std::string_view text_, source_;
  Findings* findings_;
  std::set<std::size_t> claimed_;
};

}  // namespace tenon::relay
