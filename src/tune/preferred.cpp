#include "tune/preferred.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace tenon::tune {
namespace {

constexpr const char* kLibrary = "library";
const std::vector<std::string> kLibraries = {"cublaslt", "cudnn"};

bool is_meant(const std::string& candidate, const std::string& name) {
  if (name == kLibrary) return std::ranges::count(kLibraries, candidate) > 0;
  const bool is_one_word = name.find(' ') == std::string::npos;
  return is_one_word ? candidate.substr(0, candidate.find(' ')) == name
                     : candidate.starts_with(name);
}

}  // namespace

KernelChoice preferred_choice(std::vector<std::string> names, KernelChoice otherwise) {
  return [names = std::move(names), otherwise = std::move(otherwise)](
             const codegen::Decision& decision) -> std::optional<codegen::Selection> {
    for (const std::string& name : names) {
      for (std::size_t k = 0; k < decision.candidates.size(); ++k) {
        const codegen::Decision::Candidate& option = decision.candidates[k];
        if (option.verdict.accepts && is_meant(option.name, name))
          return codegen::Selection{{{k}}, "preferred"};
      }
    }
    return otherwise ? otherwise(decision) : std::nullopt;
  };
}

void require_candidate_names(const std::vector<std::string>& names, const Target& target) {
  const std::vector<std::string> known = target.candidate_names();
  for (const std::string& name : names) {
    const std::string word = name.substr(0, name.find(' '));
    if (std::ranges::count(known, word) > 0) continue;
    throw Error(concat("no kernels of this target are called '", name, "'"), ErrorKind::Usage)
        .hint(suggest_name(word, known));
  }
}

}  // namespace tenon::tune
