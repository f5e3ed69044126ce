#include "program/library_call.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tenon::inline program {
namespace {

struct Word {
  LibraryCall::Kind kind;
  const char* word;
};
constexpr std::array<Word, 4> kWords = {{{LibraryCall::Kind::Matmul, "product"},
                                         {LibraryCall::Kind::Convolution, "convolution"},
                                         {LibraryCall::Kind::DataGradient, "data-gradient"},
                                         {LibraryCall::Kind::WeightGradient, "weight-gradient"}}};

}  // namespace

std::size_t extent_count(LibraryCall::Kind kind) {
  return kind == LibraryCall::Kind::Matmul ? 12 : 18;
}

std::string to_string(const LibraryCall& call) {
  std::array<char, 40> alpha{};
  std::snprintf(alpha.data(), alpha.size(), "%.17g", call.alpha);
  const auto* const named = std::ranges::find(kWords, call.kind, &Word::kind);
  return concat(named->word, " dtype=", call.dtype, " result=", call.result_dtype,
                " tf32=", call.allows_tf32 ? 1 : 0, " transpose_a=", call.is_a_transposed ? 1 : 0,
                " transpose_b=", call.is_b_transposed ? 1 : 0, " bias=", call.has_bias ? 1 : 0,
                " residual=", call.has_residual ? 1 : 0, " rectified=", call.is_rectified ? 1 : 0,
                " alpha=", alpha.data());
}

LibraryCall parse_library_call(const std::string& text) {
  const auto refuse = [&] {
    return Error("the program calls a library's function that this version does not know")
        .got(text);
  };
  const std::vector<std::string> words = split(text, ' ');
  if (words.size() != 10) throw refuse();
  LibraryCall call;
  const auto* const named = std::ranges::find(kWords, words[0], &Word::word);
  if (named == kWords.end()) throw refuse();
  call.kind = named->kind;
  const auto value = [&](std::size_t index, const std::string& key) {
    if (!words[index].starts_with(key + "=")) throw refuse();
    return words[index].substr(key.size() + 1);
  };
  const auto flag = [&](std::size_t index, const std::string& key) {
    const std::string found = value(index, key);
    if (found != "0" && found != "1") throw refuse();
    return found == "1";
  };
  const auto dtype = [&](std::size_t index, const std::string& key) {
    std::string found = value(index, key);
    if (found != "f16" && found != "bf16" && found != "f32" && found != "f64") throw refuse();
    return found;
  };
  call.dtype = dtype(1, "dtype");
  call.result_dtype = dtype(2, "result");
  call.allows_tf32 = flag(3, "tf32");
  call.is_a_transposed = flag(4, "transpose_a");
  call.is_b_transposed = flag(5, "transpose_b");
  call.has_bias = flag(6, "bias");
  call.has_residual = flag(7, "residual");
  call.is_rectified = flag(8, "rectified");
  const std::optional<double> alpha = parse_real(value(9, "alpha"));
  if (!alpha) throw refuse();
  call.alpha = *alpha;
  return call;
}

}  // namespace tenon::inline program
