// Tile-and-fuse legality and cost: two anchors share a kernel, and the producer is computed tile by
// tile.
#include "expr/signature.h"
#include "passes/fuse/rules.h"

#include <algorithm>

namespace tenon::passes::fusing {
namespace {

// Limit on recomputed overlap between tiles, unless the work is negligible. Flop counts are a rough
// estimate of an element's cost, so the limit is strict.
constexpr double kMaxOverlap = 0.125;

// Returns whether a Winograd transform of the whole image would save most of the products, which no
// gain from tiling makes up for.
bool gains_by_transform(const NodeAccess& access, std::span<const RequiredRegion> image) {
  if (access.role != Role::Contraction) return false;
  const auto slides = std::ranges::count_if(image, [](const RequiredRegion& region) {
    return region.step == 1 && region.count == Dim(3);
  });
  const bool sums_channels = std::ranges::any_of(image, [](const RequiredRegion& region) {
    return !region.axis && !(region.count == Dim(1));
  });
  return slides == 2 && sums_channels;
}

/// One value between two nodes, tiled along the axes of the second node's result.
struct Cut {
  const Dims& handed;                      // extents of the value
  const Dims& result;                      // extents of the reader's result
  std::span<const RequiredRegion> region;  // region that the reader requires, by axis of the value

  // Returns the number of positions along an axis of the value that one tile needs; nullopt if
  // borders interfere or the number is only known at run time.
  std::optional<double> positions(std::size_t axis, std::size_t depth, double block) const {
    const RequiredRegion& at = region[axis];
    const double all = size_hint(handed[axis]), count = size_hint(at.count);
    if (!at.axis || *at.axis > depth) {
      return handed[axis].is_constant() ? std::optional(all) : std::nullopt;
    }
    const double last = static_cast<double>(at.first) +
                        static_cast<double>(at.step) * (size_hint(result[*at.axis]) - 1) + count;
    if (at.step < 0 || at.first < 0 || last > all) return std::nullopt;
    const double cut = *at.axis == depth ? block : 1;
    return static_cast<double>(at.step) * (cut - 1) + count;
  }
};

// Returns the number of elements of the padded copy of its input that the producer makes first.
double padded_count(std::span<const RequiredRegion> image, std::span<const double> counts) {
  if (std::ranges::none_of(image, &RequiredRegion::is_window)) return 0;
  double elements = 1;
  for (const RequiredRegion& region : image) {
    const double count = size_hint(region.count);
    const bool follows = region.axis && *region.axis < counts.size();
    elements *=
        follows ? static_cast<double>(region.step) * (counts[*region.axis] - 1) + count : count;
  }
  return elements;
}

}  // namespace

const std::vector<RequiredRegion>& Rules::regions(NodeId node, std::size_t operand) const {
  std::string key = signature_of(clusters.graph(), node);
  if (key.empty()) key = "node " + std::to_string(node.index());
  key += " @" + std::to_string(operand);
  const auto [found, is_new] = regions_.try_emplace(std::move(key));
  if (is_new) found->second = required_regions(clusters.graph(), node, operand);
  return found->second;
}

double Rules::weight_bytes(ClusterId cluster, std::optional<std::size_t> depth) const {
  const Graph& graph = clusters.graph();
  std::vector<ValueId> weights;
  for (NodeId id : clusters.nodes(cluster)) {
    const Node& node = graph.node(id);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      if (!operand || clusters.maker(operand) == cluster) continue;
      const bool is_factor = access_[id].role == Role::Contraction && k == 1;
      if (!is_factor && !graph.constant_of(operand)) continue;
      // A tile reads only its own part of operands that vary with the tiled loops.
      const bool moves_along = depth && id == anchor_node(cluster) &&
                               std::ranges::any_of(regions(id, k), [&](const RequiredRegion& at) {
                                 return at.axis && *at.axis <= *depth;
                               });
      if (!moves_along) weights.push_back(operand);
    }
  }
  std::ranges::sort(weights);
  const auto rest = std::ranges::unique(weights);
  weights.erase(rest.begin(), rest.end());
  double bytes = 0;
  for (ValueId weight : weights) bytes += bytes_[weight];
  return bytes;
}

namespace {

bool sums_integers(const Graph& graph, NodeId anchor) {
  const Type& type = graph.value(graph.node(anchor).results.front()).type;
  return type.is_tensor() && type.tensor().dtype == DType::I32;
}

}  // namespace

Rules::TileAndFuseVerdict Rules::tile_and_fuse_verdict(ClusterId producer, ClusterId reader) const {
  const Graph& graph = clusters.graph();
  const NodeId first = anchor_node(producer), second = anchor_node(reader);
  const std::vector<Edge> uses = edges(producer, reader);
  if (const Refusal why = tile_and_fuse_refusal(producer, reader, uses)) return {why};
  if (sums_integers(graph, first) || sums_integers(graph, second))
    return {"int8 contractions are tiled individually"};
  const ValueId handed = uses.front().value;
  const Dims& dims = graph.value(handed).type.tensor().dims;
  const Dims& result = graph.value(graph.node(second).results.front()).type.tensor().dims;
  const std::vector<ValueId>& operands = graph.node(second).operands;
  const auto position = std::ranges::find(operands, handed) - operands.begin();
  const std::vector<RequiredRegion>& reader_regions =
      regions(second, static_cast<std::size_t>(position));
  const std::vector<RequiredRegion>& image = regions(first, 0);
  if (reader_regions.size() != dims.size() || image.empty())
    return {"the reader accesses unknown positions"};
  if (gains_by_transform(access_[first], image) ||
      gains_by_transform(access_[second], reader_regions)) {
    return {"windows that slide by one are better transformed, which takes whole images"};
  }

  const Cut cut{dims, result, reader_regions};
  const double elements = size_hint(product(dims));
  const double element_bytes = bytes_[handed] / std::max(1.0, elements);
  nests::FusionCost cost{.prices = prices_};
  cost.handed_bytes = bytes_[handed];
  cost.kernels = 1;
  cost.flops = infos_[producer.index()].flops + infos_[reader.index()].flops;
  const double work = infos_[producer.index()].flops / std::max(1.0, elements);
  bool fits = false;
  double gain = 0, around = 1, sure_around = 1;
  for (std::size_t depth = 0; depth < result.size(); ++depth) {
    const double extent = size_hint(result[depth]);
    const std::int64_t whole = result[depth].is_constant() ? result[depth].constant() : 1;
    const double weights = weight_bytes(producer, std::nullopt) + weight_bytes(reader, depth);
    for (std::int64_t block = 1; block <= std::min<std::int64_t>(whole, nests::kMaxFusedBlock);
         ++block) {
      if (whole % block != 0 || result[depth] == Dim(1)) continue;
      std::vector<double> counts;
      double piece = 1;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        counts.push_back(cut.positions(axis, depth, static_cast<double>(block)).value_or(0));
        piece *= counts.back();
      }
      if (piece == 0) continue;
      cost.passes = around * extent / static_cast<double>(block);
      cost.sure_passes = sure_around * least_value(result[depth]) / static_cast<double>(block);
      const double again = std::max(0.0, cost.passes * piece - elements);
      if (again > kMaxOverlap * elements &&
          again * work > prices_.fork_bytes * prices_.machine_balance) {
        fits = true;
        continue;
      }
      // If a tile covers the whole value, every tile reads the whole input.
      cost.weight_bytes =
          weights + (piece >= elements ? bytes_[graph.node(first).operands.front()] : 0);
      cost.again_flops = again * work;
      cost.again_bytes = again * element_bytes;
      const double columns = size_hint(dims.back()), result_columns = size_hint(result.back());
      if (access_[first].role == Role::Contraction) {
        cost.count_rows(piece / std::max(1.0, columns), elements / std::max(1.0, columns),
                        infos_[producer.index()].flops);
      }
      if (access_[second].role == Role::Contraction) {
        const double rows = size_hint(product(result)) / std::max(1.0, result_columns);
        const double cut_columns =
            depth + 1 == result.size() ? static_cast<double>(block) : result_columns;
        const double computed = size_hint(product(result)) / cost.passes;
        cost.count_rows(computed / std::max(1.0, cut_columns), rows, infos_[reader.index()].flops);
      }
      cost.local_bytes = element_bytes * (piece + padded_count(image, counts));
      fits |= cost.gain() != -1;
      gain = std::max(gain, cost.gain());
    }
    around *= extent;
    sure_around *= least_value(result[depth]);
  }
  if (!fits) return {"the region that the reader needs exceeds the scratch limit"};
  if (gain <= 0) return {"in pieces, more would be computed or read again than memory is spared"};
  return {nullptr, gain};
}

// Refusals that do not depend on cost.
Refusal Rules::tile_and_fuse_refusal(ClusterId producer, ClusterId reader,
                                     std::span<const Edge> uses) const {
  const Graph& graph = clusters.graph();
  const NodeId second = anchor_node(reader);
  for (ClusterId cluster : {producer, reader}) {
    const auto anchors = std::ranges::count_if(
        clusters.nodes(cluster), [&](NodeId id) { return access_[id].role >= Role::Rows; });
    if (anchors != 1) return "tile-and-fuse holds two folds or contractions at most";
  }
  if (anchor(producer) != Role::Contraction && anchor(reader) != Role::Contraction) {
    return "folding needs elements that other tiles compute";
  }
  if (uses.empty()) return "it has no reader";
  const ValueId handed = uses.front().value;
  for (const Edge& edge : uses) {
    if (edge.reader != second || edge.value != handed)
      return "the reader accesses it at several positions";
  }
  if (uses.size() != 1) return "the reader accesses it at several positions";
  if (escapes(handed, producer, reader)) return "it must be stored for other readers";
  const NodeId maker = graph.value(handed).producer;
  if (is_piece_[maker] || graph.node(second).results.size() != 1) {
    return "parts of it are computed by other tiles";
  }
  // The axes of the value must be those of the node that computes it.
  for (NodeId id : clusters.nodes(producer)) {
    if (access_[id].role != Role::Move || id == anchor_node(producer)) continue;
    const Node& node = graph.node(id);
    const bool only_squeezes = squeezed(graph.value(node.operands.front()).type.tensor().dims) ==
                               squeezed(graph.value(node.results.front()).type.tensor().dims);
    if (!only_squeezes) return "its elements are rearranged before the reader";
  }
  return nullptr;
}

}  // namespace tenon::passes::fusing
