#pragma once

#include "memory/problem.h"

namespace tenon::memory {

/// The moment of a plan with the most live bytes, and the storages that are live then.
struct Peak {
  struct Alive {
    std::string name;
    std::uint64_t bytes = 0;
  };
  std::uint32_t event = 0;
  /// The item that runs then, or next; empty after the last item.
  std::string item;
  /// Live bytes.
  std::uint64_t bytes = 0;
  /// Largest first.
  std::vector<Alive> alive;
};
Peak peak_of(const Plan& plan, const Problem& problem);
/// Returns "step 'conv', where 5 MiB are alive: 'x' 3 MiB, …" with the ten largest.
std::string text_of(const Peak& peak);

}  // namespace tenon::memory
