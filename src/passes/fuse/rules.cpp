#include "passes/fuse/rules.h"

#include "expr/analysis.h"
#include "ops/families/window.h"

#include <algorithm>

namespace tenon::passes::fusing {
namespace {

// Limits of a generated kernel: reductions inside its row loop, for which LLVM takes quadratic
// time, and call arguments.
constexpr std::size_t kMaxFolds = 8;
constexpr std::size_t kMaxPorts = 64;

Dim row_count(const NodeAccess& rows) {
  Dim count = 1;
  for (std::size_t k = 0; k < rows.space.size(); ++k) {
    if (!std::ranges::binary_search(rows.axes, k)) count = count * rows.space[k];
  }
  return count;
}

// Returns the iteration space of a reduction without axes of extent 1, with a flag for reduced
// axes.
std::vector<std::pair<Dim, bool>> shape_of_rows(const NodeAccess& rows) {
  std::vector<std::pair<Dim, bool>> shape;
  for (std::size_t k = 0; k < rows.space.size(); ++k) {
    if (rows.space[k] == Dim(1)) continue;
    shape.emplace_back(rows.space[k], std::ranges::binary_search(rows.axes, k));
  }
  return shape;
}

bool same_but_one_extent(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  std::size_t different = 0;
  for (std::size_t k = 0; k < a.size(); ++k) different += !(a[k] == b[k]);
  return different <= 1;
}

}  // namespace

Rules::Rules(const Graph& graph, const TargetFacts& target, std::size_t max_nodes)
    : clusters(graph),
      access_(access_of_nodes(graph)),
      is_piece_(graph.node_id_bound()),
      feeds_folds_(graph.node_id_bound()),
      tiled_readers_(graph.node_id_bound()),
      counts_(graph.value_id_bound()),
      bytes_(graph.value_id_bound()),
      prices_(fusion_prices(target)),
      max_nodes_(max_nodes),
      keeps_tiles_(target.keeps_tiles),
      gemm_tiles_(static_cast<double>(target.gemm_tile) * target.gemm_tile * target.units),
      multiplies_bytes_(target.has_int8_multiply_add()) {
  for (ValueId input : graph.inputs()) bytes_[input] = size_hint_bytes(graph.value(input).type);
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    const NodeAccess& access = access_[id];
    const bool is_anchor = access.role >= Role::Rows;
    infos_.push_back({.anchor = is_anchor ? access.role : Role::Pointwise,
                      .anchor_node = is_anchor ? id : NodeId{},
                      .is_opaque = access.role == Role::Opaque,
                      .is_view = access.role == Role::Move,
                      .folds = access.role == Role::Rows ? 1U : 0U,
                      .ports = ports_of(id),
                      .flops = access.flops});
    for (ValueId result : node.results) {
      if (!result || !graph.value(result).type.is_tensor()) continue;
      bytes_[result] = size_hint_bytes(graph.value(result).type);
      if (access.role != Role::Opaque)
        counts_[result] = element_count(graph.value(result).type.tensor());
    }
  }
}

std::vector<Rules::Edge> Rules::edges(ClusterId producer, ClusterId reader) const {
  std::vector<Edge> found;
  for (NodeId id : clusters.nodes(reader)) {
    const Node& node = clusters.graph().node(id);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      if (!operand || clusters.maker(operand) != producer) continue;
      found.push_back({operand, id, feeds_folds_[id] ? Access::Window : access_[id].operands[k]});
    }
  }
  return found;
}

bool Rules::escapes(ValueId value, ClusterId a, ClusterId b) const {
  const Graph& graph = clusters.graph();
  if (graph.is_output(value)) return true;
  return std::ranges::any_of(graph.readers(value), [&](NodeId reader) {
    const ClusterId cluster = clusters.of(reader);
    return cluster != a && cluster != b;
  });
}

bool Rules::same_rows(NodeId a, NodeId b) const {
  return shape_of_rows(access_[a]) == shape_of_rows(access_[b]);
}

Rules::Ports Rules::ports_of(NodeId id) const {
  const Node& node = clusters.graph().node(id);
  Ports ports;
  for (ValueId operand : node.operands) {
    if (operand) ports.read.push_back(operand);
  }
  std::ranges::sort(ports.read);
  const auto rest = std::ranges::unique(ports.read);
  ports.read.erase(rest.begin(), rest.end());
  const ClusterId own = clusters.of(id);
  for (ValueId result : node.results) ports.written += result && escapes(result, own, own);
  return ports;
}

// Values that one cluster writes and the other reads become internal, unless a third one reads
// them.
Rules::Ports Rules::merged_ports(ClusterId a, ClusterId b) const {
  const Ports &left = infos_[a.index()].ports, &right = infos_[b.index()].ports;
  Ports ports;
  ports.written = left.written + right.written;
  std::ranges::set_union(left.read, right.read, std::back_inserter(ports.read));
  std::erase_if(ports.read, [&](ValueId value) {
    const ClusterId maker = clusters.maker(value);
    if (maker != a && maker != b) return false;
    ports.written -= !escapes(value, a, b);
    return true;
  });
  return ports;
}

Refusal Rules::size_refusal(ClusterId a, ClusterId b) const {
  if (clusters.nodes(a).size() + clusters.nodes(b).size() > max_nodes_) {
    return "the kernel would have too many statements";
  }
  if (infos_[a.index()].folds + infos_[b.index()].folds > kMaxFolds) {
    return "the kernel would have too many folds";
  }
  const auto [few, many] =
      std::minmax({infos_[a.index()].ports.count(), infos_[b.index()].ports.count()});
  // A value passed between the clusters is a port of both, so that a merge removes at most the
  // smaller number of ports.
  const bool is_hopeless = many > few + kMaxPorts;
  if (is_hopeless || (few + many > kMaxPorts && merged_ports(a, b).count() > kMaxPorts)) {
    return "the kernel would have too many arguments";
  }
  return nullptr;
}

// Returns whether the node is a slice of the anchor's result or computed from one: of another size,
// yet each element is computed once.
bool Rules::is_part(NodeId id) const {
  const Node& node = clusters.graph().node(id);
  if (is_piece_[id] || (access_[id].covers && node.results.size() > 1)) return true;
  return has_pieces_ && std::ranges::any_of(node.operands, [&](ValueId operand) {
           const NodeId producer = operand ? clusters.graph().value(operand).producer : NodeId{};
           return producer && is_piece_[producer];
         });
}

// Requires every value written to have the size of the iteration space; each element is computed
// once.
Refusal Rules::escape_refusal(ClusterId a, ClusterId b) const {
  const ClusterId anchored = anchor(b) == Role::Pointwise ? a : b;
  const NodeId centre = anchor_node(anchored);
  const bool is_rows = anchor(anchored) == Role::Rows;
  std::vector<Dim> allowed;
  if (is_rows) {
    allowed = {product(access_[centre].space), row_count(access_[centre])};
  } else if (centre) {
    for (ValueId result : clusters.graph().node(centre).results) {
      if (result) allowed.push_back(counts_[result]);
    }
  }
  for (ClusterId cluster : {a, b}) {
    for (NodeId id : clusters.nodes(cluster)) {
      if (access_[id].role >= Role::Rows || (centre && is_part(id))) continue;
      for (ValueId result : clusters.graph().node(id).results) {
        if (!result || !escapes(result, a, b)) continue;
        if (allowed.empty()) {
          allowed.push_back(counts_[result]);
        } else if (std::ranges::find(allowed, counts_[result]) == allowed.end()) {
          return "a value that others read has another size than the kernel's space";
        }
      }
    }
  }
  return nullptr;
}

// Returns how often each element of the value is computed if its reader recomputes it.
double Rules::repeats(const Edge& edge, ClusterId reader) const {
  const double count = std::max(1.0, size_hint(counts_[edge.value]));
  const NodeAccess& access = access_[edge.reader];
  const auto result_count = [&](NodeId id) {
    double most = 1;
    for (ValueId result : clusters.graph().node(id).results) {
      if (result) most = std::max(most, size_hint(counts_[result]));
    }
    return most;
  };
  double once = 1;
  if (edge.access == Access::Window) {
    const NodeId centre = anchor_node(reader);
    once = (centre ? access_[centre].folded_elements : access.folded_elements) / count;
  } else if (edge.access == Access::Broadcast ||
             (edge.access == Access::Moved && !access.reads_once)) {
    once = result_count(edge.reader) / count;
  }
  // Later readers may repeat the reader itself.
  const double space = result_count(clusters.nodes(reader).back());
  return std::max(1.0, once) * std::max(1.0, space / result_count(edge.reader));
}

double Rules::saved_bytes(ClusterId producer, ClusterId reader) const {
  double saved = 0;
  ValueId last;
  for (const Edge& edge : edges(producer, reader)) {
    if (edge.value == last) continue;
    last = edge.value;
    saved += bytes_[edge.value] * (escapes(edge.value, producer, reader) ? 1 : 2);
  }
  return saved;
}

Refusal Rules::anchored_producer(ClusterId producer, ClusterId reader,
                                 std::span<const Edge> uses) const {
  const Role role = anchor(producer);
  const Role other = anchor(reader);
  if (role == Role::Rows && other == Role::Rows) {
    if (!same_rows(anchor_node(producer), anchor_node(reader))) {
      return "the two fold other axes or other spaces";
    }
  } else if (other != Role::Pointwise) {
    if (allows_tile_and_fuse_) return tile_and_fuse_verdict(producer, reader).refusal;
    if (other == Role::Contraction && role == Role::Contraction) return "both are contractions";
    return other == Role::Contraction ? "a contraction reads it many times over"
                                      : "folding needs elements that other tiles compute";
  }
  ValueId piece;
  for (const Edge& edge : uses) {
    const NodeAccess& access = access_[edge.reader];
    const bool is_bijection = access.role == Role::Move && access.covers;
    if (edge.access == Access::Moved && is_bijection) {
      // Both the value and its permutation would be written. The reader of the permutation may have
      // a cheaper fusion and is considered first.
      if (!writes_views_ && escapes(edge.value, producer, reader)) {
        return "other readers use its layout, but this reader transposes it";
      }
    } else if (role == Role::Rows && edge.access == Access::Broadcast) {
      const NodeAccess& rows = access_[anchor_node(producer)];
      if (!(counts_[edge.value] == row_count(rows))) return "the reader broadcasts it";
    } else if (edge.access != Access::Aligned &&
               !(role == Role::Rows && edge.access == Access::Row)) {
      return edge.access == Access::Broadcast
                 ? "the reader broadcasts it"
                 : "the reader does not read each element exactly once";
    }
    if (!is_piece_[clusters.graph().value(edge.value).producer]) continue;
    if (piece && piece != edge.value)
      return "the reader needs two slices that different tiles compute";
    piece = edge.value;
  }
  return nullptr;
}

Refusal Rules::plain_producer(ClusterId producer, ClusterId reader,
                              std::span<const Edge> uses) const {
  double most_repeats = 1;
  ValueId last;
  bool escaping = false;
  for (const Edge& edge : uses) {
    // A value that one node reads several times has one edge per read.
    if (edge.value != last) escaping = escapes(edge.value, producer, reader);
    last = edge.value;
    const bool is_gathered = edge.access == Access::Window || edge.access == Access::Moved;
    if (is_view(producer) && escaping && !writes_views_) return "inlined into each reader";
    const bool is_factor =
        anchor(reader) == Role::Contraction || access_[edge.reader].role == Role::Contraction;
    if (is_factor && edge.access == Access::Window) {
      if (!is_view(producer)) return "a contraction reads it many times over";
      if (escaping) return "it must be stored for other readers";
    }
    if (is_gathered && escaping && !access_[edge.reader].covers) {
      return "it must be stored for other readers";
    }
    most_repeats = std::max(most_repeats, repeats(edge, reader));
  }
  const double flops = infos_[producer.index()].flops;
  const double more = flops * (most_repeats - 1) / prices_.machine_balance;
  if (more > saved_bytes(producer, reader) + prices_.kernel_bytes) {
    return "computing it again for each use costs more than reading it";
  }
  return nullptr;
}

// Returns whether the anchor is a plain matrix product or convolution with a reduction long enough
// for a library call.
bool Rules::is_library_contraction(ClusterId cluster) const {
  return is_long_reduction(cluster) &&
         clusters.graph().node(anchor_node(cluster)).op->precision == Precision::Integer;
}

// Includes weight gradients, whose epilogues run in a separate kernel after the library's.
bool Rules::is_long_reduction(ClusterId cluster) const {
  constexpr double kLongReduction = 48;
  const NodeId centre = anchor_node(cluster);
  if (keeps_tiles_ || !centre || access_[centre].role != Role::Contraction) return false;
  const Node& node = clusters.graph().node(centre);
  const bool is_product = node.op->precision == Precision::Integer || takes_windows(*node.op);
  if (!is_product || node.results.size() != 1) return false;
  return access_[centre].flops >= 2 * kLongReduction * size_hint(counts_[node.results.front()]);
}

namespace {

// Returns whether the node is a residual add or a ReLU, the epilogues that libraries support.
bool is_library_step(const Graph& graph, NodeId id) {
  const std::vector<Expr> exprs = lowered(graph, id);
  if (exprs.size() != 1 || exprs.front().node().kind != ExprKind::Binary) return false;
  const ExprNode& step = exprs.front().node();
  const auto is_read = [](const Expr& arg) {
    const ExprNode* node = &arg.node();
    while (node->kind == ExprKind::Read || node->kind == ExprKind::Reshape)
      node = &node->args.front().node();
    return node->kind == ExprKind::Operand;
  };
  const auto is_zero = [](const Expr& arg) {
    return arg.node().kind == ExprKind::Literal && arg.node().real == 0;
  };
  const Expr &a = step.args[0], &b = step.args[1];
  if (step.binary == BinaryOp::Add) return is_read(a) && is_read(b);
  return step.binary == BinaryOp::Maximum &&
         ((is_read(a) && is_zero(b)) || (is_zero(a) && is_read(b)));
}

}  // namespace

bool Rules::ends_as(ValueId value, DType dtype, int depth) const {
  const Graph& graph = clusters.graph();
  if (graph.value(value).type.tensor().dtype == dtype) return true;
  if (depth == 0 || graph.is_output(value)) return false;
  const auto& readers = graph.readers(value);
  return !readers.empty() && std::ranges::all_of(readers, [&](NodeId id) {
    return access_[id].role == Role::Pointwise && graph.node(id).results.size() == 1 &&
           ends_as(graph.node(id).results.front(), dtype, depth - 1);
  });
}

namespace {

// Returns whether a node multiplies 8-bit operands; further operands are added to its sums.
bool are_bytes(const Graph& graph, const Node& node) {
  const auto is_byte = [&](std::size_t operand) {
    const DType dtype = graph.value(node.operands[operand]).type.tensor().dtype;
    return dtype == DType::U8 || dtype == DType::I8;
  };
  return node.operands.size() >= 2 && is_byte(0) && is_byte(1);
}

}  // namespace

bool Rules::takes_any_step(ClusterId cluster, ClusterId reader) const {
  constexpr int kMostSteps = 12;
  const Graph& graph = clusters.graph();
  const Node& node = graph.node(anchor_node(cluster));
  const DType dtype = graph.value(node.results.front()).type.tensor().dtype;
  if (dtype == DType::I32) return multiplies_bytes_ && are_bytes(graph, node);
  const bool suits = (dtype == DType::F16 || dtype == DType::BF16) && gemm_tiles_ > 0 &&
                     size_hint(counts_[node.results.front()]) >= gemm_tiles_ &&
                     !takes_windows(*node.op);
  return suits && std::ranges::all_of(clusters.nodes(reader), [&](NodeId id) {
           return ends_as(graph.node(id).results.front(), dtype, kMostSteps);
         });
}

Refusal Rules::library_refusal(ClusterId producer, ClusterId reader) const {
  const Graph& graph = clusters.graph();
  const bool is_read_whole =
      is_view(producer) ? is_long_reduction(reader)
                        : is_library_contraction(reader) && anchor(producer) == Role::Pointwise;
  if (is_read_whole) return "a library reads what lies in memory";
  if (!is_library_contraction(producer)) return nullptr;
  const NodeId centre = anchor_node(producer);
  const auto dtype_of = [&](ValueId value) { return graph.value(value).type.tensor().dtype; };
  const DType dtype = dtype_of(graph.node(centre).results.front());
  const bool takes_any = takes_any_step(producer, reader);
  for (NodeId id : clusters.nodes(reader)) {
    const Node& node = graph.node(id);
    const bool is_taken =
        access_[id].role == Role::Pointwise &&
        (takes_any || (dtype_of(node.results.front()) == dtype && is_library_step(graph, id)));
    if (!is_taken) return "libraries fuse only a bias, a residual or relu";
  }
  return nullptr;
}

Refusal Rules::refusal(ClusterId producer, ClusterId reader) const {
  if (!may_join_others(producer)) return "it stays alone";
  if (!may_join_others(reader)) return "the reader is not fusible";
  if (const Refusal why = library_refusal(producer, reader)) return why;
  if (const Refusal why = size_refusal(producer, reader)) return why;
  const std::vector<Edge> uses = edges(producer, reader);
  const Refusal why = anchor(producer) == Role::Pointwise
                          ? plain_producer(producer, reader, uses)
                          : anchored_producer(producer, reader, uses);
  if (why) return why;
  return escape_refusal(producer, reader);
}

Refusal Rules::sibling_refusal(ClusterId a, ClusterId b, ValueId shared) const {
  if (!may_join_others(a) || !may_join_others(b)) return "one of them stays alone";
  if (anchor(a) != anchor(b)) return "they do different work";
  if (!edges(a, b).empty() || !edges(b, a).empty()) return "one reads the other";
  if (const Refusal why = size_refusal(a, b)) return why;
  const Graph& graph = clusters.graph();
  if (anchor(a) == Role::Rows) {
    if (!same_rows(anchor_node(a), anchor_node(b)))
      return "the two fold other axes or other spaces";
    return escape_refusal(a, b);
  }
  if (anchor(a) == Role::Pointwise) return escape_refusal(a, b);
  if (anchor(a) != Role::Contraction) return "windows are folded alone";
  const Node &x = graph.node(anchor_node(a)), &y = graph.node(anchor_node(b));
  const bool is_alike = x.op == y.op && x.attrs == y.attrs &&
                        x.operands.size() == y.operands.size() && x.operands.front() == shared &&
                        y.operands.front() == shared;
  if (!is_alike) return "they are not the same contraction of one input";
  for (std::size_t k = 1; k < x.operands.size(); ++k) {
    if (!x.operands[k] || !y.operands[k]) {
      if (x.operands[k] != y.operands[k]) return "they are not the same contraction of one input";
      continue;
    }
    const TensorType& left = graph.value(x.operands[k]).type.tensor();
    const TensorType& right = graph.value(y.operands[k]).type.tensor();
    if (left.dtype != right.dtype || left.layout != right.layout ||
        !same_but_one_extent(left.dims, right.dims)) {
      return "their weights differ in more than the number of channels";
    }
  }
  const TensorType& left = graph.value(x.results.front()).type.tensor();
  const TensorType& right = graph.value(y.results.front()).type.tensor();
  if (left.dtype != right.dtype || !same_but_one_extent(left.dims, right.dims)) {
    return "their results differ in more than the number of channels";
  }
  return nullptr;
}

Refusal Rules::copy_refusal(ClusterId view, ClusterId reader) const {
  if (!is_view(view)) return "it computes something";
  if (!may_join_others(reader)) return "the reader is not fusible";
  if (is_long_reduction(reader)) return "a library reads whole matrices";
  if (const Refusal why = size_refusal(view, reader)) return why;
  for (NodeId id : clusters.nodes(view)) {
    for (ValueId result : clusters.graph().node(id).results) {
      if (result && clusters.graph().is_output(result)) return "it is a graph output";
    }
  }
  return nullptr;
}

void Rules::copy(std::span<const NodeId> nodes, NodeId reader) {
  std::vector<NodeId>& copies = copies_[reader];
  copies.insert(copies.end(), nodes.begin(), nodes.end());
  std::ranges::sort(copies);
  const auto rest = std::ranges::unique(copies);
  copies.erase(rest.begin(), rest.end());
}

std::vector<NodeId> Rules::copies_in(ClusterId cluster) const {
  std::vector<NodeId> all;
  for (NodeId id : clusters.nodes(cluster)) {
    all.insert(all.end(), copies_[id].begin(), copies_[id].end());
  }
  std::ranges::sort(all);
  const auto rest = std::ranges::unique(all);
  all.erase(rest.begin(), rest.end());
  return all;
}

bool Rules::merge(ClusterId a, ClusterId b) {
  const Info &left = infos_[a.index()], &right = infos_[b.index()];
  const bool is_before = left.anchor == Role::Pointwise;  // the anchor that stays
  const bool is_tiled = allows_tile_and_fuse_ && !is_before && right.anchor != Role::Pointwise;
  const bool keeps_right = is_before || is_tiled;
  std::vector<Edge> uses;
  Ports ports;
  std::vector<NodeId> first;
  const std::optional<ClusterId> merged = clusters.merge(a, b, [&] {
    uses = edges(a, b);
    ports = merged_ports(a, b);
    first.assign(clusters.nodes(a).begin(), clusters.nodes(a).end());
  });
  if (!merged) return false;
  if (is_tiled) tiled_readers_[left.anchor_node] = right.anchor_node;
  infos_[merged->index()] = {.anchor = keeps_right ? right.anchor : left.anchor,
                             .anchor_node = keeps_right ? right.anchor_node : left.anchor_node,
                             .is_opaque = false,
                             .is_view = left.is_view && right.is_view,
                             .folds = left.folds + right.folds,
                             .ports = std::move(ports),
                             .flops = left.flops + right.flops};
  if (is_before) {
    const bool is_folded =
        std::ranges::any_of(uses, [](const Edge& edge) { return edge.access == Access::Window; });
    for (NodeId id : first) feeds_folds_[id] = is_folded;
    return true;
  }
  for (const Edge& edge : uses) {
    if (!is_part(edge.reader)) continue;
    is_piece_[edge.reader] = 1;
    has_pieces_ = true;
  }
  return true;
}

}  // namespace tenon::passes::fusing
