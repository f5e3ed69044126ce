#pragma once

#include "base/error.h"
#include "documents/findings.h"
#include "documents/relay/import_call.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tenon::documents::relay {

/// Returns the type of an expression's value; nullopt for a function and for types known at run
/// time only.
std::optional<RelayType> type_of(const ImportedValue& meaning);

/// Claims of a text about types and extents that are redundant to its operators. Without findings
/// to collect them, type comments are ignored and a wrong attribute is an Error.
class Claims {
 public:
  Claims(std::string_view text, std::string_view source, Findings* findings)
      : text_(text), source_(source), findings_(findings) {}

  bool are_wanted() const { return findings_ != nullptr; }
  std::string place(std::size_t position) const;
  /// Returns the error with a position.
  Error at(std::size_t position, Error error) const;

  void expr(const RelayExpr& expr, const ImportedValue& made);
  void type(std::string_view what, std::size_t position, const RelayType& says,
            const ImportedValue& made);
  /// Each position counts once, even if its function is inlined several times.
  void attribute(std::string_view what, std::size_t position, const std::string& says,
                 const std::string& should_be);
  /// Reports a call that contradicts its arguments.
  void misfit(const RelayExpr& call, const Error& error);

 private:
  void compare(std::string_view what, std::size_t position, const std::string& says,
               const std::string& should_be);

  std::string_view text_, source_;
  Findings* findings_;
  std::set<std::size_t> claimed_;
};

}  // namespace tenon::documents::relay
