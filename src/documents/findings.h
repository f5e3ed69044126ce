#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tenon::documents {

/// Results of recomputing a document's claims: how many claims of each kind hold, and every
/// mismatch in full.
class Findings {
 public:
  struct Kind {
    /// E.g. "footprint: memory", "type comment".
    std::string name;
    std::size_t holding = 0, total = 0;
  };
  struct Mismatch {
    std::string kind, place, says, should_be;
  };

  /// Counts one claim. `place` is its location ("line 3, column 14", "$.var.12.size") or a function
  /// that returns it, so that a claim that holds does not pay for it.
  template <class T, class U, class Place>
  void compare(std::string_view kind, const Place& place, const T& says, const U& should_be) {
    if (says == should_be) {
      hold(kind);
    } else {
      miss(kind, place, concat(says), concat(should_be));
    }
  }
  void hold(std::string_view kind);
  template <class Place>
  void miss(std::string_view kind, const Place& place, std::string says, std::string should_be) {
    if constexpr (std::is_invocable_v<const Place&>) {
      add({std::string(kind), place(), std::move(says), std::move(should_be)});
    } else {
      add({std::string(kind), std::string(place), std::move(says), std::move(should_be)});
    }
  }

  /// Counts one claim that holds or fails.
  template <class Place>
  void require(bool holds, std::string_view kind, const Place& place, std::string says,
               std::string should_be) {
    if (holds) {
      hold(kind);
    } else {
      miss(kind, place, std::move(says), std::move(should_be));
    }
  }

  /// In order of first occurrence.
  const std::vector<Kind>& kinds() const { return kinds_; }
  const std::vector<Mismatch>& mismatches() const { return mismatches_; }

 private:
  Kind& kind(std::string_view name);
  void add(Mismatch mismatch);

  std::vector<Kind> kinds_;
  std::vector<Mismatch> mismatches_;
};

}  // namespace tenon::documents
