#include "codegen/winograd.h"

#include "base/error.h"
#include "codegen/lines.h"
#include "codegen/winograd_nests.h"
#include "ops/access.h"

#include <algorithm>
#include <array>
#include <map>

namespace tenon::codegen {
namespace {

constexpr std::int64_t kColumns = 16;

// The place of a load's element in its buffer.
std::optional<Line> place_of(const Scalar& load) {
  Line place;
  std::int64_t stride = 1;
  for (std::size_t axis = load->view.size(); axis-- > 0;) {
    const auto index = line_of(load->args[axis]);
    if (!index || !load->view[axis].is_constant()) return std::nullopt;
    place.start += stride * index->start;
    for (const auto& [loop, step] : index->steps) place.steps[loop] += stride * step;
    stride *= load->view[axis].constant();
  }
  return place;
}

class Finder {
 public:
  Finder(const NestSequence::Part& part, const std::vector<bool>& is_constant)
      : part_(part), is_constant_(is_constant) {}

  FoundWindow run() {
    const auto sum = find_contraction(part_.nest);
    if (!sum || sum->reduced.size() != 3) return no("it is not a sum over channels and windows of two axes");
    for (const NestBuffer& buffer : part_.nest.buffers) {
      if (buffer.storage == Storage::Scratch) return no("more than the sum is done in its loops");
    }
    for (const auto* loops : {&sum->kept, &sum->reduced}) {
      for (const Statement* loop : *loops) {
        loops_.emplace(loop->id, loop->extent);
        extents_[loop->id] = loop->extent.is_constant() ? loop->extent.constant() : kUnknown;
      }
    }
    found_.sum = *sum;
    std::string reason = "none of its operands is constant weights of (output, channel, row, column)";
    for (const bool swaps : {false, true}) {
      found_.image = swaps ? sum->b : sum->a;
      if (!is_weight(swaps ? sum->a : sum->b)) continue;
      reason = "its windows are not 3x3, or do not move by one";
      if (!is_image()) continue;
      reason = "channels do not lie side by side in its image and its result";
      if (is_channels_last()) return {found_, ""};
    }
    return no(reason);
  }

 private:
  static FoundWindow no(std::string reason) { return {std::nullopt, std::move(reason)}; }

  bool is_reduced(std::size_t loop) const {
    return std::any_of(found_.sum.reduced.begin(), found_.sum.reduced.end(),
                       [&](const Statement* statement) { return statement->id == loop; });
  }

  // Read at (output, channel, row, column) of the window, in any order.
  bool is_weight(const Scalar& load) {
    const std::size_t buffer = part_.buffers[load->id];
    const auto place = place_of(load);
    const bool is_constant = buffer < is_constant_.size() && is_constant_[buffer];
    if (load->bounds != Bounds::Inside || !is_constant || !place) return false;
    weight_ = *place;
    found_.weights.source = buffer;
    int outputs = 0;
    for (const auto& [loop, step] : place->steps) {
      if (is_reduced(loop)) continue;
      found_.output = loop;
      ++outputs;
    }
    return outputs == 1 && place->steps.size() == 4;
  }

  bool is_image() {
    const Scalar& image = found_.image;
    if (image->bounds == Bounds::Checked) return false;
    const bool fills = image->bounds == Bounds::Fill;
    if (fills && (image->args.back()->kind != ScalarKind::Real || image->args.back()->real != 0))
      return false;
    std::size_t windows = 0, channels = 0, batches = 0;
    for (std::size_t axis = 0; axis < image->view.size(); ++axis) {
      const auto index = line_of(image->args[axis]);
      if (!index) return false;
      for (const auto& [loop, step] : index->steps) {
        const bool is_apart = index->steps.size() == 2 && is_reduced(loop) && step > 1;
        if (step != 1 && !is_apart) return false;
      }
      if (index->steps.size() == 2) {
        std::size_t kept = index->steps.begin()->first, reduced = index->steps.rbegin()->first;
        if (is_reduced(kept)) std::swap(kept, reduced);
        if (is_reduced(kept) || !is_reduced(reduced) || extents_.at(reduced) != 3) return false;
        const bool is_row = windows++ == 0;
        (is_row ? found_.row : found_.column) = kept;
        (is_row ? found_.window_row : found_.window_column) = reduced;
        (is_row ? found_.rows : found_.columns) = loops_.at(kept);
        (is_row ? found_.first_row : found_.first_column) = index->start;
        (is_row ? found_.row_step : found_.column_step) = index->steps.at(reduced);
        (is_row ? found_.image_rows : found_.image_columns) = image->view[axis];
      } else if (index->start != 0 || index->steps.size() > 1) {
        return false;
      } else if (index->steps.size() == 1) {
        const std::size_t loop = index->steps.begin()->first;
        if (is_reduced(loop)) {
          found_.channel = loop;
          ++channels;
        } else {
          found_.batch = loop;
          found_.batches = loops_.at(loop);
          ++batches;
        }
      }
    }
    if (windows != 2 || channels != 1 || batches > 1 || found_.row == found_.column ||
        found_.window_row == found_.window_column)
      return false;
    // The loops around the sum are these and no others.
    return found_.sum.kept.size() == 3 + batches && found_.row != found_.output &&
           found_.column != found_.output &&
           (!found_.batch || (*found_.batch != found_.row && *found_.batch != found_.column &&
                              *found_.batch != found_.output));
  }

  // Neighbouring channels lie side by side in the image and in what is written.
  bool is_channels_last() {
    if (along(found_.image, found_.channel) != Access::Neighbours) return false;
    for (std::size_t k = 2; k < found_.sum.inner->size(); ++k) {
      const Statement& statement = (*found_.sum.inner)[k];
      if (statement.kind == Statement::Kind::Store &&
          access_along(statement.indices, statement.view, found_.output) != Access::Neighbours) {
        return false;
      }
    }
    WinogradWeights& weights = found_.weights;
    weights.channels = extents_.at(found_.channel);
    weights.outputs = extents_.at(found_.output);
    weights.base = weight_.start;
    const auto step = [&](std::size_t loop) {
      return weight_.steps.contains(loop) ? weight_.steps.at(loop) : 0;
    };
    weights.by_output = step(found_.output);
    weights.by_channel = step(found_.channel);
    weights.by_row = step(found_.window_row);
    weights.by_column = step(found_.window_column);
    return weights.channels > 0 && weights.outputs > 0 && found_.usual_tiles() > 0;
  }

  const NestSequence::Part& part_;
  const std::vector<bool>& is_constant_;
  static constexpr std::int64_t kUnknown = -1;
  std::map<std::size_t, std::int64_t> extents_;
  std::map<std::size_t, Dim> loops_;
  WindowSum found_;
  Line weight_;
};

// One number for each of the outputs that lie side by side.
using Numbers = std::array<double, kColumns>;

// G g for one row or column of three weights.
void transform(const std::array<Numbers, 3>& g, std::array<Numbers, 6>& out, int tile) {
  for (std::size_t k = 0; k < kColumns; ++k) {
    const double a = g[0][k], b = g[1][k], c = g[2][k];
    if (tile == 2) {
      out[0][k] = a;
      out[1][k] = (a + b + c) / 2;
      out[2][k] = (a - b + c) / 2;
      out[3][k] = c;
    } else {
      out[0][k] = a / 4;
      out[1][k] = (a + b + c) * (-1.0 / 6);
      out[2][k] = (a - b + c) * (-1.0 / 6);
      out[3][k] = (a + 2 * b + 4 * c) * (1.0 / 24);
      out[4][k] = (a - 2 * b + 4 * c) * (1.0 / 24);
      out[5][k] = c;
    }
  }
}

}  // namespace

Dims WinogradWeights::dims() const {
  return {(tile + 2) * (tile + 2), (outputs + kColumns - 1) / kColumns, channels, kColumns};
}

void transform_weights(const WinogradWeights& weights, const float* source, float* target) {
  const auto edge = static_cast<std::size_t>(weights.tile) + 2;
  const std::int64_t blocks = (weights.outputs + kColumns - 1) / kColumns;
  const std::int64_t stride = blocks * weights.channels * kColumns;  // between kinds of products
  std::array<Numbers, 3> g{};
  std::array<Numbers, 6> out{};
  std::array<std::array<Numbers, 3>, 6> half{};  // by row of the result, column of the window
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t count = std::min(kColumns, weights.outputs - block * kColumns);
    for (Numbers& numbers : g) numbers.fill(0);  // past the last output
    for (std::int64_t c = 0; c < weights.channels; ++c) {
      const float* w =
          source + weights.base + block * kColumns * weights.by_output + c * weights.by_channel;
      for (std::size_t column = 0; column < 3; ++column) {
        for (std::size_t row = 0; row < 3; ++row) {
          const float* from = w + static_cast<std::int64_t>(row) * weights.by_row +
                              static_cast<std::int64_t>(column) * weights.by_column;
          for (std::int64_t k = 0; k < count; ++k) {
            g[row][static_cast<std::size_t>(k)] = from[k * weights.by_output];
          }
        }
        transform(g, out, weights.tile);
        for (std::size_t row = 0; row < edge; ++row) half[row][column] = out[row];
      }
      float* at = target + (block * weights.channels + c) * kColumns;
      for (std::size_t row = 0; row < edge; ++row) {
        transform(half[row], out, weights.tile);
        for (std::size_t column = 0; column < edge; ++column, at += stride) {
          for (std::size_t k = 0; k < kColumns; ++k) at[k] = static_cast<float>(out[column][k]);
        }
      }
    }
  }
}

FoundWindow find_window(const NestSequence::Part& part, const std::vector<bool>& is_constant) {
  return Finder(part, is_constant).run();
}

namespace {

// Of a core that starts two vectors of 8 multiply-adds in each cycle. Weights come from memory: those
// of the layers between two runs are more than caches hold.
constexpr double kProducts = 16, kImageCost = 20, kResultCost = 16, kBytes = 7;
constexpr std::int64_t kEnoughBlocks = 8;

}  // namespace

double direct_cost(const WindowSum& window) {
  const WinogradWeights& w = window.weights;
  const auto products = static_cast<double>(9 * w.channels * w.outputs);
  const double pixels = static_cast<double>(window.usual_batches()) * usual_value(window.rows) * usual_value(window.columns);
  return products * pixels / kProducts +
         products * 4 / kBytes;
}

double winograd_cost(const WindowSum& window) {
  const WinogradWeights& w = window.weights;
  const auto tiles = static_cast<double>(window.usual_tiles()),
             kinds = static_cast<double>(window.edge() * window.edge());
  const auto products = static_cast<double>(w.channels * window.blocked_outputs());
  const double share = kinds / 36;
  return kinds * products * (tiles / kProducts + 4 / kBytes) +
         tiles * share *
             (kImageCost * static_cast<double>(w.channels) +
              kResultCost * static_cast<double>(w.outputs));
}

std::int64_t tiles_in_block(const WindowSum& window) {
  const std::int64_t bytes =
      window.edge() * window.edge() * window.weights.channels * window.blocked_outputs() * 4;
  // Images of any extents: their tiles may be many, or so few that larger blocks were not enough.
  if (!window.has_fixed_images()) return 16;
  const std::int64_t wanted = bytes <= (4 << 20) ? 24 : 48;
  const std::int64_t blocks = (window.usual_tiles() + wanted - 1) / wanted;
  return blocks < kEnoughBlocks ? 0 : (window.usual_tiles() + blocks - 1) / blocks;
}

}  // namespace tenon::codegen
