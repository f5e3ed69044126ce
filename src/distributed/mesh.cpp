#include "distributed/mesh.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <optional>
#include <string>

namespace tenon::distributed {
namespace {

struct Words {
  std::optional<std::int64_t> data, tensor;
  bool has_data = false;
};

Words words_of(std::string_view text) {
  Words words;
  for (const std::string& word : split(std::string(text), ',')) {
    const std::size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    std::optional<std::int64_t> count;
    if (colon != std::string::npos) count = parse_integer(word.substr(colon + 1));
    const bool is_data = name == "data" && !words.has_data;
    const bool is_tensor = name == "tensor" && !words.tensor;
    const bool has_count = colon == std::string::npos ? is_data : count && *count >= 1;
    if ((!is_data && !is_tensor) || !has_count) {
      throw Error(concat("ranks cannot share out '", text, "'"), ErrorKind::Usage)
          .expected("--parallel=data, data:2, tensor:2 or data:2,tensor:2");
    }
    if (is_data) words.has_data = true;
    (is_data ? words.data : words.tensor) = count;
  }
  return words;
}

}  // namespace

Mesh parse_mesh(std::string_view text) {
  const Words words = words_of(text);
  return {words.data.value_or(1), words.tensor.value_or(1)};
}

Mesh parse_mesh(std::string_view text, std::int64_t rank_count) {
  const Words words = words_of(text);
  Mesh mesh{words.data.value_or(1), words.tensor.value_or(1)};
  if (words.has_data && !words.data)
    mesh.data = std::max<std::int64_t>(1, rank_count / mesh.tensor);
  if (mesh.data * mesh.tensor == rank_count) return mesh;
  throw Error("another number of ranks was started than shares the work", ErrorKind::Usage)
      .expected(mesh.data * mesh.tensor, " ranks for --parallel=", text)
      .got(rank_count);
}

}  // namespace tenon::distributed
