#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tenon {

/// What came of computing again what a document claims: how many claims of each kind hold, and in
/// full each one that does not.
class Findings {
 public:
  struct Kind {
    /// "footprint: memory", "type comment"
    std::string name;
    std::size_t holding = 0, total = 0;
  };
  struct Mismatch {
    std::string kind, place, says, should_be;
  };

  /// Counts one claim. `place` is where it stands ("line 3, column 14", "$.var.12.size"), or a
  /// function that gives that, so that a place costs nothing where the claim holds.
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

  /// Counts one claim that holds or does not.
  template <class Place>
  void require(bool holds, std::string_view kind, const Place& place, std::string says,
               std::string should_be) {
    if (holds) {
      hold(kind);
    } else {
      miss(kind, place, std::move(says), std::move(should_be));
    }
  }

  /// in the order they first came up
  const std::vector<Kind>& kinds() const { return kinds_; }
  const std::vector<Mismatch>& mismatches() const { return mismatches_; }

 private:
  Kind& kind(std::string_view name);
  void add(Mismatch mismatch);

  std::vector<Kind> kinds_;
  std::vector<Mismatch> mismatches_;
};

}  // namespace tenon
