#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

#include <cstdint>
#include <map>

namespace tenon::inline ops::tfidf_vectorizer_op {
namespace {

using Integers = std::vector<std::int64_t>;

enum class TfidfMode : std::uint8_t { Tf, Idf, TfIdf };

struct Attrs {
  TfidfMode mode = TfidfMode::Tf;
  std::int64_t min_gram_length = 1, max_gram_length = 1, max_skip_count = 0;
  Integers ngram_counts;   // start of the n-grams of each length in the pool
  Integers ngram_indexes;  // the column of each n-gram of the pool
  Integers pool_integers;
  std::vector<std::string> pool_texts;
  std::vector<double> weights;
};

std::int64_t column_count(const Attrs& attrs) {
  std::int64_t highest = -1;
  for (std::int64_t index : attrs.ngram_indexes) {
    if (index < 0 || index >= kMaxExtent)
      throw Error("tfidf_vectorizer: an n-gram has no column").got(index);
    highest = std::max(highest, index);
  }
  return highest + 1;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  if (x.rank() > 2) throw Error("tfidf_vectorizer: rows of tokens are needed").got(x);
  if ((x.dtype == DType::String) != attrs.pool_integers.empty()) {
    throw Error("tfidf_vectorizer: tokens and pool differ in kind").got(x);
  }
  TensorType y{DType::F32, {}, {}};
  if (x.rank() == 2) y.dims.push_back(x.dims[0]);
  y.dims.emplace_back(column_count(attrs));
  return y;
}

/// Maps tokens to numbers, equal for equal tokens of the pool; unknown tokens are -1.
class Vocabulary {
 public:
  explicit Vocabulary(const Attrs& attrs) {
    for (std::int64_t token : attrs.pool_integers) pool_.push_back(add(integers_, token));
    if (!pool_.empty()) return;
    for (const std::string& token : attrs.pool_texts) pool_.push_back(add(texts_, token));
  }
  const Integers& pool() const { return pool_; }
  Integers tokens(const Tensor& x) const {
    Integers found;
    if (x.dtype() == DType::String) {
      for (const std::string& token : x.strings()) found.push_back(find(texts_, token));
    } else {
      for (std::int64_t token : x.integers()) found.push_back(find(integers_, token));
    }
    return found;
  }

 private:
  template <class T>
  static std::int64_t add(std::map<T, std::int64_t>& known, const T& token) {
    return known.emplace(token, static_cast<std::int64_t>(known.size())).first->second;
  }
  template <class T>
  static std::int64_t find(const std::map<T, std::int64_t>& known, const T& token) {
    const auto entry = known.find(token);
    return entry == known.end() ? -1 : entry->second;
  }
  std::map<std::int64_t, std::int64_t> integers_;
  std::map<std::string, std::int64_t> texts_;
  Integers pool_;
};

using Columns = std::map<Integers, std::int64_t>;  // n-gram of one length -> column

// Indexed by length - 1; empty for lengths that are not counted.
std::vector<Columns> columns_by_length(const Attrs& attrs, const Integers& pool) {
  std::vector<Columns> lengths(attrs.ngram_counts.size());
  std::size_t ngram = 0;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const std::size_t length = k + 1;
    const auto size = static_cast<std::int64_t>(pool.size());
    const std::int64_t begin = attrs.ngram_counts[k];
    const std::int64_t end = k + 1 < lengths.size() ? attrs.ngram_counts[k + 1] : size;
    if (begin < 0 || begin > end || end > size) {
      throw Error("tfidf_vectorizer: the pool has no n-grams of some length")
          .expected("ascending positions within the pool's ", size)
          .got(begin, " to ", end);
    }
    const std::size_t count = static_cast<std::size_t>(end - begin) / length;
    const bool is_counted = static_cast<std::int64_t>(length) >= attrs.min_gram_length &&
                            static_cast<std::int64_t>(length) <= attrs.max_gram_length;
    for (std::size_t entry = 0; entry < count; ++entry, ++ngram) {
      if (ngram >= attrs.ngram_indexes.size())
        throw Error("tfidf_vectorizer: an n-gram has no column");
      if (!is_counted) continue;
      const auto first = pool.begin() + begin + static_cast<std::ptrdiff_t>(entry * length);
      lengths[k].emplace(Integers(first, first + static_cast<std::ptrdiff_t>(length)),
                         attrs.ngram_indexes[ngram]);
    }
  }
  return lengths;
}

// Counts each position at which tokens `stride` apart form an n-gram.
void count_ngrams(std::span<const std::int64_t> row, const Columns& columns, std::size_t length,
                  std::size_t stride, std::span<double> counts) {
  Integers ngram(length);
  for (std::size_t start = 0; start + stride * (length - 1) < row.size(); ++start) {
    for (std::size_t k = 0; k < length; ++k) ngram[k] = row[start + k * stride];
    const auto entry = columns.find(ngram);
    if (entry != columns.end()) counts[static_cast<std::size_t>(entry->second)] += 1;
  }
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const Vocabulary vocabulary(attrs);
  const std::vector<Columns> lengths = columns_by_length(attrs, vocabulary.pool());
  const Integers tokens = vocabulary.tokens(x);
  const auto row_count = static_cast<std::size_t>(x.rank() == 2 ? x.shape()[0] : 1);
  const std::size_t row_size = row_count == 0 ? 0 : tokens.size() / row_count;
  const auto width = static_cast<std::size_t>(column_count(attrs));
  Shape shape{static_cast<std::int64_t>(width)};
  if (x.rank() == 2) shape.insert(shape.begin(), x.shape()[0]);
  Tensor y(DType::F32, shape);
  for (std::size_t row = 0; row < row_count; ++row) {
    std::vector<double> counts(width);
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      // Single tokens are counted once, since a stride does not affect them.
      const std::int64_t skips = k == 0 ? 0 : attrs.max_skip_count;
      for (std::int64_t skip = 0; skip <= skips && !lengths[k].empty(); ++skip) {
        if (static_cast<std::size_t>(skip) >= row_size) break;
        count_ngrams(std::span(tokens).subspan(row * row_size, row_size), lengths[k], k + 1,
                     static_cast<std::size_t>(skip) + 1, counts);
      }
    }
    for (std::size_t column = 0; column < width; ++column) {
      const double weight = column < attrs.weights.size() ? attrs.weights[column] : 1;
      const double seen = counts[column] > 0 ? 1 : 0;
      const double value = attrs.mode == TfidfMode::Tf    ? counts[column]
                           : attrs.mode == TfidfMode::Idf ? seen * weight
                                                          : counts[column] * weight;
      y.set_real(static_cast<std::int64_t>(row * width + column), value);
    }
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(tfidf_vectorizer) = OpSpec<Attrs>{
    .name = "tfidf_vectorizer",
    .summary =
        "how often each n-gram of a pool appears in each row of tokens, up to `max_skip_count` "
        "tokens "
        "skipped between two; weights are by column",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"mode", &Attrs::mode, words("tf idf tfidf")},
              {"min_gram_length", &Attrs::min_gram_length},
              {"max_gram_length", &Attrs::max_gram_length},
              {"max_skip_count", &Attrs::max_skip_count},
              {"ngram_counts", &Attrs::ngram_counts},
              {"ngram_indexes", &Attrs::ngram_indexes},
              {"pool_integers", &Attrs::pool_integers},
              {"pool_texts", &Attrs::pool_texts},
              {"weights", &Attrs::weights}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it counts"),
    .layout = logical_order(),
    .examples = {"x: i64 a b"},
};

}  // namespace tenon::inline ops::tfidf_vectorizer_op
