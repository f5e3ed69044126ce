// Matches attention as exporters write it: softmax(q k^T * scale + mask) v. The scale may be
// applied to q, to k or to the scores, as factor or divisor, and keys and values may be repeated
// for groups of heads (grouped-query attention).
#include "ops/definition/registry.h"
#include "passes/recognise/causal_mask.h"
#include "passes/recognise/rules.h"
#include "passes/rewrite/facts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::passes::recognition {

using namespace rewrite;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// A score this low has zero weight next to any other, in every element type.
constexpr double kMasked = -1e4;
constexpr int kMaxSteps = 16;

class AttentionReader {
 public:
  /// A softmax of masked scores alone is NaN; `are_masked_rows_zero` if zeros replace it. Scores
  /// that are NaN for other reasons stay NaN, as in PyTorch before the export.
  AttentionReader(const Match& match, bool are_masked_rows_zero)
      : match_(match), graph_(match.graph()), are_masked_rows_zero_(are_masked_rows_zero) {}

  ValueId attention() {
    if (!match_.root_type().is_tensor()) return {};
    v_ = match_.value("v");
    if (!read_scores(match_.value("z"))) return {};
    read_factors(q_);
    read_factors(transposed_keys_);
    read_keys();
    read_factors(k_);
    if (rank_ == 4) read_groups();
    if (!checked()) return {};
    split_heads();
    return made();
  }

 private:
  ValueId refuse(const char* why) const {
    match_.refuse(why);
    return {};
  }

  const Node* producer(ValueId value) const {
    const NodeId id = graph_.value(value).producer;
    return id ? &graph_.node(id) : nullptr;
  }
  const TensorType* type(ValueId value) const { return match_.type(value); }
  bool is_same_type(ValueId a, ValueId b) const {
    return type(a) && type(b) && type(a)->dims == type(b)->dims;
  }

  // Matches a node that scales by a number: its other operand and the factor.
  bool take_factor(const Node& node, ValueId& rest, double& factor) const {
    const bool is_product = node.op->name == "mul", is_quotient = node.op->name == "div";
    if (!is_product && !is_quotient) return false;
    for (const std::size_t place : {1U, 0U}) {
      if (place == 0 && is_quotient) return false;
      const std::optional<double> number = uniform_value(graph_, node.operands[place]);
      const ValueId other = node.operands[1 - place];
      if (!number || !is_same_type(other, node.results.front())) continue;
      rest = other;
      factor *= is_product ? *number : 1 / *number;
      return true;
    }
    return false;
  }

  // Walks from softmax's operand back to the product of queries and keys.
  bool read_scores(ValueId z) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const Node* node = producer(z);
      if (!node) return false;
      const std::string& op = node->op->name;
      if (!match_.is_read_once(z)) return match_.refuse("its scores have other readers");
      if (op == "matmul") return read_product(*node);
      if (op == "cast" && is_float(type(z)->dtype)) {
        z = node->operands.front();
      } else if (take_factor(*node, z, scale_)) {
        is_scaled_ = true;
      } else if (op == "add") {
        if (!read_sum(*node, z)) return false;
      } else if (op == "where") {
        if (!read_choice(*node, z)) return false;
      } else {
        return false;
      }
    }
    return false;
  }

  bool read_product(const Node& node) {
    if (node.attrs.find("out_dtype")) return false;
    q_ = node.operands[0];
    transposed_keys_ = node.operands[1];
    if (!type(q_) || !type(transposed_keys_) || !type(v_)) return false;
    rank_ = type(q_)->rank();
    return rank_ == type(transposed_keys_)->rank() && rank_ == type(v_)->rank() &&
           (rank_ == 3 || rank_ == 4);
  }

  // Returns whether the scores can be this operand of a sum or select, judging by its producers.
  bool leads_to_product(ValueId value) const {
    for (int step = 0; step < kMaxSteps; ++step) {
      const Node* node = producer(value);
      if (!node) return false;
      const std::string& op = node->op->name;
      if (op == "matmul") return true;
      double factor = 1;
      if (op == "cast") {
        value = node->operands.front();
      } else if (op == "where") {
        value = node->operands[uniform_value(graph_, node->operands[1]) ? 2 : 1];
      } else if (op == "add") {
        return leads_to_product(node->operands[0]) || leads_to_product(node->operands[1]);
      } else if (!take_factor(*node, value, factor)) {
        return false;
      }
    }
    return false;
  }

  bool read_sum(const Node& node, ValueId& z) {
    if (is_scaled_) return match_.refuse("its mask is scaled too");
    for (const std::size_t place : {0U, 1U}) {
      const ValueId scores = node.operands[place], mask = node.operands[1 - place];
      if (!leads_to_product(scores) || !is_same_type(scores, node.results.front())) continue;
      if (mask_) return match_.refuse("it has more than one mask");
      mask_ = mask;
      z = scores;
      return true;
    }
    return match_.refuse("the scores are not a product of queries and keys");
  }

  // Matches scores selected by a condition, with a masking value otherwise.
  bool read_choice(const Node& node, ValueId& z) {
    if (is_scaled_ || mask_ || is_causal_) return match_.refuse("it has more than one mask");
    const ValueId condition = node.operands[0];
    const auto low = uniform_value(graph_, node.operands[2]),
               high = uniform_value(graph_, node.operands[1]);
    const bool is_inverted = !low;
    const std::optional<double> fill = is_inverted ? high : low;
    const ValueId scores = node.operands[is_inverted ? 2 : 1];
    if (!fill || !(*fill <= kMasked) || !is_same_type(scores, node.results.front())) {
      return match_.refuse("the masked value is not low enough");
    }
    const MaskFacts facts = facts_of_mask(graph_, condition, is_inverted);
    if (facts.causal_offset) {
      is_causal_ = true;
      causal_offset_ = *facts.causal_offset;
    } else if (facts.has_full_rows || *fill == -infinity) {
      mask_ = condition;
      is_mask_inverted_ = is_inverted;
    } else {
      return match_.refuse("fully masked rows differ: attention gives them no weights");
    }
    z = scores;
    return true;
  }

  void read_factors(ValueId& value) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const Node* node = producer(value);
      if (!node || !take_factor(*node, value, scale_)) return;
    }
  }

  // Reads the keys with their last two axes in the order of the queries.
  void read_keys() {
    const Node* node = producer(transposed_keys_);
    Dims perm;
    for (std::size_t k = 0; k < rank_; ++k) perm.emplace_back(static_cast<std::int64_t>(k));
    ValueId from = transposed_keys_;
    if (node && node->op->name == "transpose") {
      const AttrValue* given = node->attrs.find("perm");
      const auto counted = given ? counted_axes(std::get<Dims>(*given), rank_) : std::nullopt;
      if (counted) {
        perm.assign(counted->begin(), counted->end());
        from = node->operands.front();
      }
    }
    std::swap(perm[rank_ - 1], perm[rank_ - 2]);
    bool is_in_order = true;
    for (std::size_t k = 0; k < rank_; ++k)
      is_in_order &= perm[k] == Dim(static_cast<std::int64_t>(k));
    k_ = is_in_order ? from : match_.make("transpose", {from}, {{"perm", perm}});
  }

  bool is_view(const Node* node) const {
    return node && (node->op->name == "reshape" || node->op->name == "unsqueeze" ||
                    node->op->name == "squeeze");
  }

  // Returns the [batch, heads, length, size] value whose heads this one repeats, by a new axis that
  // is expanded and merged with the heads; invalid if heads are not repeated.
  ValueId ungrouped(ValueId value) const {
    const Node* joined = producer(value);
    if (!is_view(joined)) return {};
    const Node* repeated = producer(joined->operands.front());
    if (!repeated || repeated->op->name != "expand") return {};
    const ValueId apart = repeated->operands.front();
    const TensorType *wide = type(joined->operands.front()), *narrow = type(apart),
                     *own = type(value);
    if (!wide || !narrow || !own || wide->rank() != 5 || narrow->rank() != 5) return {};
    if (!(narrow->dims[2] == Dim(1)) || !(own->dims[1] == wide->dims[1] * wide->dims[2])) return {};
    for (const std::size_t axis : {0U, 1U, 3U, 4U}) {
      if (!(narrow->dims[axis] == wide->dims[axis])) return {};
    }
    if (!(own->dims[2] == wide->dims[3])) return {};
    const Dims dims{narrow->dims[0], narrow->dims[1], narrow->dims[3], narrow->dims[4]};
    const Node* view = producer(apart);
    if (is_view(view) && type(view->operands.front()) &&
        type(view->operands.front())->dims == dims) {
      return view->operands.front();
    }
    return match_.make_reshape(apart, dims);
  }

  void read_groups() {
    const ValueId k = ungrouped(k_), v = ungrouped(v_);
    if (!k || !v || !(type(k)->dims[1] == type(v)->dims[1])) return;
    k_ = k;
    v_ = v;
  }

  bool checked() const {
    const TensorType *q = type(q_), *k = type(k_), *v = type(v_);
    if (!q || !k || !v || q->dtype != k->dtype || !is_float(q->dtype)) return false;
    for (std::size_t axis = 0; axis + 2 < rank_; ++axis) {
      if (!(k->dims[axis] == v->dims[axis]))
        return match_.refuse("keys and values differ in batch or heads");
    }
    if (!(q->dims[0] == k->dims[0]))
      return match_.refuse("one batch of keys serves several of queries");
    if (rank_ == 3) return true;
    const bool is_grouped = mod(q->dims[1], k->dims[1]) == Dim(0);
    return is_grouped || q->dims[1] == k->dims[1] ||
           match_.refuse("heads are no multiple of key heads");
  }

  Attributes attributes() const {
    Attributes attrs;
    if (!are_masked_rows_zero_) attrs.set("masked_rows", std::string("nan"));
    const Dim& size = type(q_)->dims.back();
    const double usual =
        size.is_constant() ? 1 / std::sqrt(static_cast<double>(size.constant())) : 0;
    // Exporters round the scale to f32, which matters only in f64.
    const double near = type(q_)->dtype == DType::F64 ? 1e-14 : 1e-6;
    if (!(std::abs(scale_ - usual) <= near * usual)) attrs.set("scale", scale_);
    if (is_causal_) {
      attrs.set("causal", true);
      attrs.set("causal_offset", causal_offset_);
    }
    return attrs;
  }

  struct Heads {
    /// [batch, heads, length, size], or [length, batch, heads * size]
    ValueId from;
    /// batch * count is the first axis of the merged value
    Dim batch, count;
    bool is_joined = false;
  };

  // Returns the operand of rank 4 that a [batch * heads, length, size] value was merged from.
  std::optional<Heads> heads_of(ValueId value) const {
    const Node* view = producer(value);
    if (is_view(view)) {
      const TensorType *apart = type(view->operands.front()), *own = type(value);
      if (!apart || apart->rank() != 4) return {};
      if (!(apart->dims[2] == own->dims[1]) || !(apart->dims[3] == own->dims[2])) return {};
      if (!(apart->dims[0] * apart->dims[1] == own->dims[0])) return {};
      return Heads{view->operands.front(), apart->dims[0], apart->dims[1]};
    }
    if (!view || view->op->name != "transpose") return {};
    const AttrValue* perm = view->attrs.find("perm");
    if (!perm || std::get<Dims>(*perm) != Dims{1, 0, 2}) return {};
    const ValueId parts = view->operands.front();
    if (!is_view(producer(parts))) return {};
    const ValueId from = producer(parts)->operands.front();
    const TensorType *whole = type(from), *own = type(parts);
    if (!whole || !own || whole->rank() != 3 || !(whole->dims[0] == own->dims[0])) return {};
    const Dim &width = whole->dims[2], &size = own->dims[2];
    if (!width.is_constant() || !size.is_constant() || size.constant() <= 0) return {};
    const Dim count = width.constant() / size.constant();
    if (!(count * size == width) || !(whole->dims[1] * count == own->dims[1])) return {};
    return Heads{from, whole->dims[1], count, true};
  }

  ValueId apart(const Heads& heads) const {
    if (!heads.is_joined) return heads.from;
    const TensorType* whole = type(heads.from);
    const Dim size = whole->dims[2].constant() / heads.count.constant();
    const ValueId split =
        match_.make_reshape(heads.from, {whole->dims[0], heads.batch, heads.count, size});
    return split ? match_.make("transpose", {split}, {{"perm", Dims{1, 2, 0, 3}}}) : ValueId{};
  }

  // Undoes the merge of batch and heads into one axis: each of four axes has a constant stride,
  // which batch * heads in one axis lacks. A mask that differs between heads prevents it.
  void split_heads() {
    if (rank_ != 3 || (mask_ && (!type(mask_) || type(mask_)->rank() > 2))) return;
    const std::optional<Heads> q = heads_of(q_), k = heads_of(k_), v = heads_of(v_);
    if (!q || !k || !v) return;
    for (const Heads& other : {*k, *v}) {
      if (!(other.batch == q->batch) || !(other.count == q->count)) return;
    }
    const ValueId new_q = apart(*q), new_k = apart(*k), new_v = apart(*v);
    if (!new_q || !new_k || !new_v) return;
    q_ = new_q;
    k_ = new_k;
    v_ = new_v;
    rank_ = 4;
  }

  // Attention takes four axes; three axes become one batch whose heads are the batches.
  ValueId with_batch(ValueId value) const {
    if (rank_ == 4) return value;
    Dims dims = type(value)->dims;
    dims.insert(dims.begin(), Dim(1));
    return match_.make_reshape(value, dims);
  }

  ValueId made() const {
    ValueId mask = mask_;
    if (mask && is_mask_inverted_) mask = match_.make("logical_not", {mask});
    if (causal_offset_.range().lo < 0 || !is_written_down(causal_offset_)) return {};
    const ValueId q = with_batch(q_), k = with_batch(k_), v = with_batch(v_);
    if (!q || !k || !v) return {};
    const ValueId y = match_.make("attention", {q, k, v, mask}, attributes());
    return match_.make_reshape(y, match_.root_type().tensor().dims);
  }

  const Match& match_;
  const Graph& graph_;
  bool are_masked_rows_zero_;
  std::size_t rank_ = 0;
  ValueId q_, transposed_keys_, k_, v_, mask_;
  bool is_mask_inverted_ = false, is_causal_ = false, is_scaled_ = false;
  Dim causal_offset_ = 0;
  double scale_ = 1;
};

bool is_over_keys(const Match& match) {
  const TensorType* z = match.type("z");
  if (!z) return false;
  const auto axis = counted_axes({match.dim("a")}, z->rank());
  return axis && static_cast<std::size_t>(axis->front()) + 1 == z->rank() &&
         is_common_float("z")(match) && is_common_float("v")(match) && match.is_alone();
}

ValueId attention(const Match& match) { return AttentionReader(match, false).attention(); }
ValueId attention_with_zero_rows(const Match& match) {
  return AttentionReader(match, true).attention();
}

}  // namespace

std::vector<Rule> attention_rules() {
  return {
      {"matmul(cast?(softmax(z) {axis = a}) {to = _t}, v)", attention, is_over_keys},
      {"matmul(cast?(where(is_nan(s), 0, s: softmax(z) {axis = a})) {to = _t}, v)",
       attention_with_zero_rows, is_over_keys},
  };
}

}  // namespace tenon::passes::recognition
