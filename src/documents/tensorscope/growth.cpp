#include "base/error.h"
#include "documents/tensorscope/wiring.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tenon::documents::tensorscope {
namespace {

// Maximum number of candidate tensors of one shape that are compared, the latest first.
constexpr std::size_t max_weighed = 64;
// Maximum number of waiting rows that are retried when a tensor of their shape becomes available.
constexpr std::size_t max_woken = 8;

// Returns the part of a name about the layer: "conv1" of "conv1/Conv2D", whose 2 is not a layer
// number.
std::string_view layer_part(std::string_view name) {
  return op_in_name(name).empty() ? name : scope_of(name);
}

std::size_t common_scopes(std::string_view a, std::string_view b) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < a.size() && k < b.size() && a[k] == b[k]; ++k) {
    const bool ends_a = k + 1 == a.size() || a[k + 1] == '/',
               ends_b = k + 1 == b.size() || b[k + 1] == '/';
    count += ends_a && ends_b;
  }
  return count;
}

// Returns the numbers in a name, as in conv2, layer1.0.conv2: layers are usually numbered in
// execution order.
std::vector<std::int64_t> numbers_in_name(std::string_view name) {
  std::vector<std::int64_t> numbers;
  for (std::size_t k = 0; k < name.size(); ++k) {
    if (name[k] < '0' || name[k] > '9') continue;
    std::int64_t number = 0;
    for (; k < name.size() && name[k] >= '0' && name[k] <= '9'; ++k) {
      number = std::min<std::int64_t>(number * 10 + (name[k] - '0'), 1 << 30);
    }
    numbers.push_back(number);
  }
  return numbers;
}

// Lexicographic order, except that a prefix comes last: pool1 ends the block of conv1_1 and
// conv1_2.
int compare_numbers(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
    if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
  }
  return a.size() == b.size() ? 0 : a.size() > b.size() ? -1 : 1;
}

// Default order of a layer's operators.
int place_in_layer(const Wiring& wiring, std::int64_t at) {
  const std::string& op = wiring.op(at);
  switch (wiring.op_class(at)) {
    case OpClass::Source:
      return 0;
    case OpClass::Contraction:
      return 1;
    case OpClass::Same:
      return op == "BiasAdd" ? 2 : op == "FusedBatchNorm" ? 3 : op == "LRN" ? 5 : 4;
    case OpClass::Shrinking:
      return 6;
    case OpClass::Gradient:
    case OpClass::Other:
      return 7;
  }
  return 7;
}

// Orders rows topologically while it connects inputs by shape. A pruned graph has no unused
// tensors, so an input is connected to a tensor of its shape without readers, if one exists; rows
// are taken in the order of the numbers in their names and of a layer's operators.
class FlowGrowth {
 public:
  FlowGrowth(Wiring& wiring, const std::vector<char>& belongs, std::vector<char>& is_placed)
      : wiring_(wiring), belongs_(belongs), is_placed_(is_placed), count_(belongs.size()) {
    std::vector<std::size_t> by_name(count_);
    std::iota(by_name.begin(), by_name.end(), 0);
    std::vector<std::vector<std::int64_t>> numbers;
    for (const Row& each : wiring.table.rows)
      numbers.push_back(numbers_in_name(layer_part(each.node)));
    std::stable_sort(by_name.begin(), by_name.end(), [&](std::size_t a, std::size_t b) {
      if (const int order = compare_numbers(numbers[a], numbers[b]); order != 0) return order < 0;
      const int place_a = place_in_layer(wiring, static_cast<std::int64_t>(a));
      const int place_b = place_in_layer(wiring, static_cast<std::int64_t>(b));
      if (place_a != place_b) return place_a < place_b;
      return natural_less(wiring.table.rows[a].node, wiring.table.rows[b].node);
    });
    rank_.resize(count_);
    for (std::size_t k = 0; k < count_; ++k) rank_[by_name[k]] = k;
    by_name_ = std::move(by_name);
    is_read_.assign(count_, 0);
    given_up_.resize(count_);
    waiting_.assign(count_, 0);
    readers_.resize(count_);
  }

  void run() {
    prepare();
    std::size_t strict = 0, lax = 0, circle = 0;
    while (true) {
      while (!ready_.empty()) take_ready();
      if (take_postponed()) continue;
      if (advance(strict, [&](std::size_t at) { return give_up(at, true); })) continue;
      if (advance(lax, [&](std::size_t at) { return give_up(at, false); })) continue;
      if (advance(circle, [&](std::size_t at) { return cut(at); })) continue;
      return;
    }
  }

 private:
  struct Shelf {
    std::vector<TensorId> unread, all;
    std::vector<std::size_t> waiting;                         // rows that wait for the first tensor
    std::set<std::pair<std::size_t, std::size_t>> postponed;  // rank, row
    std::size_t to_come = 0;                                  // outputs of unplaced rows
  };
  using Priority = std::tuple<bool, std::size_t, std::size_t>;  // has open inputs, rank, row

  const Row& row(std::size_t at) const { return wiring_.table.rows[at]; }
  Shelf& shelf(const TensorShape& shape) { return shelves_[to_string(shape)]; }
  bool is_open(std::size_t at, std::size_t input) const {
    return !wiring_.is_connected(static_cast<std::int64_t>(at), input) &&
           !given_up_[at].contains(input);
  }

  void prepare() {
    for (std::size_t at = 0; at < count_; ++at) {
      if (belongs_[at] == 0 && row(at).kind != RowKind::Fetch) continue;
      for (std::size_t input = 0; input < row(at).inputs.size(); ++input) mark_read(at, input);
    }
    for (const std::size_t at : wiring_.step.order) offer(at);
    for (std::size_t at = 0; at < count_; ++at) {
      if (belongs_[at] == 0 || is_placed_[at] != 0) continue;
      for (const TensorShape& output : row(at).outputs) ++shelf(output).to_come;
    }
    for (std::size_t at = 0; at < count_; ++at) {
      if (belongs_[at] == 0 || is_placed_[at] != 0) continue;
      for (std::size_t input = 0; input < row(at).inputs.size(); ++input) {
        const DataSource& source = wiring_.step.sources[at][input];
        if (source.row >= 0) {
          if (is_placed_[static_cast<std::size_t>(source.row)] != 0) continue;
          ++waiting_[at];
          readers_[static_cast<std::size_t>(source.row)].push_back(at);
        } else if (Shelf& from = shelf(row(at).inputs[input]); from.all.empty()) {
          ++waiting_[at];
          from.waiting.push_back(at);
        }
      }
      if (waiting_[at] == 0) make_ready(at);
    }
  }

  void mark_read(std::size_t at, std::size_t input) {
    const DataSource& source = wiring_.step.sources[at][input];
    // The reader of a layout transpose decides.
    const bool moves = input == 0 && wiring_.is_layout_transpose(static_cast<std::int64_t>(at));
    if (source.row < 0 || moves) return;
    const TensorId whole = wiring_.root({source.row, source.port});
    is_read_[static_cast<std::size_t>(whole.row)] |= bit_of(whole);
  }

  void make_ready(std::size_t at) {
    bool has_open = false;
    for (std::size_t input = 0; input < row(at).inputs.size(); ++input)
      has_open = has_open || is_open(at, input);
    ready_.emplace(has_open, rank_[at], at);
  }

  bool may_read(std::size_t at, TensorId tensor) const {
    const auto reader = static_cast<std::int64_t>(at);
    if (tensor.row == reader || !wiring_.is_copied(tensor.row, reader)) return false;
    // The optimiser removes a transpose of a transpose.
    return !wiring_.is_layout_transpose(reader) || !wiring_.is_layout_transpose(tensor.row);
  }

  struct Weighed {
    TensorId best;
    bool is_unread = false;
    std::size_t candidates = 0;
  };
  Weighed weigh(std::size_t at, std::size_t input, const std::vector<TensorId>& avoided) {
    Shelf& from = shelf(row(at).inputs[input]);
    while (!from.unread.empty() && is_read(from.unread.back())) from.unread.pop_back();
    Weighed found;
    std::tuple<bool, bool, std::size_t> best{};
    const auto weigh_all = [&](const std::vector<TensorId>& tensors, bool is_unread) {
      const std::size_t count = std::min(tensors.size(), max_weighed);
      for (std::size_t k = 0; k < count; ++k) {
        const TensorId tensor = tensors[tensors.size() - 1 - k];
        if (!may_read(at, tensor) || (is_unread && is_read(tensor))) continue;
        ++found.candidates;
        const bool is_new =
            std::find(avoided.begin(), avoided.end(), wiring_.root(tensor)) == avoided.end();
        const bool computes = wiring_.op_class(tensor.row) != OpClass::Source;
        const std::tuple<bool, bool, std::size_t> weight{
            is_new, computes, common_scopes(row(at).node, wiring_.row(tensor.row).node)};
        if (found.best.is_valid() && weight <= best) continue;
        best = weight;
        found.best = tensor;
        found.is_unread = is_unread && is_new;
      }
    };
    weigh_all(from.unread, true);
    if (!found.best.is_valid() || !found.is_unread) {
      found = {};
      weigh_all(from.all, false);
    } else {
      const auto latest = from.all.rbegin();
      const auto count = static_cast<std::ptrdiff_t>(std::min(from.all.size(), max_weighed));
      found.candidates = static_cast<std::size_t>(std::count_if(
          latest, latest + count, [&](TensorId tensor) { return may_read(at, tensor); }));
    }
    return found;
  }
  bool is_read(TensorId tensor) const {
    const TensorId whole = wiring_.root(tensor);
    return (is_read_[static_cast<std::size_t>(whole.row)] & bit_of(whole)) != 0;
  }
  // Outputs from the 64th on share a bit.
  static std::uint64_t bit_of(TensorId tensor) {
    return std::uint64_t{1} << std::min<std::size_t>(tensor.port, 63);
  }

  bool has_unread(std::size_t at, const TensorShape& wanted) {
    const std::vector<TensorId>& unread = shelf(wanted).unread;
    const std::size_t count = std::min(unread.size(), max_weighed);
    for (std::size_t k = 0; k < count; ++k) {
      const TensorId tensor = unread[unread.size() - 1 - k];
      if (!is_read(tensor) && may_read(at, tensor)) return true;
    }
    return false;
  }

  void take_ready() {
    const std::size_t at = std::get<2>(ready_.top());
    ready_.pop();
    if (is_placed_[at] != 0) return;
    bool has_open = false, may_take = false;
    const TensorShape* before = nullptr;
    for (std::size_t input = 0; input < row(at).inputs.size() && !may_take; ++input) {
      const TensorShape& wanted = row(at).inputs[input];
      if (!is_open(at, input) || (before != nullptr && *before == wanted)) continue;
      has_open = true;
      may_take = has_unread(at, wanted);
      before = &wanted;
    }
    if (!has_open || may_take) {
      if (bind(at, false)) return place(at);
    }
    for (std::size_t input = 0; input < row(at).inputs.size(); ++input) {
      if (is_open(at, input)) shelf(row(at).inputs[input]).postponed.emplace(rank_[at], at);
    }
    postponed_.emplace(rank_[at], at);
  }

  // Connects every open input. Returns false without changes if an input lacks a candidate, or
  // (while others may still appear) an unused one.
  bool bind(std::size_t at, bool may_repeat) {
    std::vector<std::pair<std::size_t, Weighed>> found;
    std::vector<TensorId> taken;
    for (std::size_t input = 0; input < row(at).inputs.size(); ++input) {
      if (!is_open(at, input)) continue;
      found.emplace_back(input, weigh(at, input, taken));
      if (!found.back().second.best.is_valid()) return false;
      const TensorId whole = wiring_.root(found.back().second.best);
      if (!may_repeat && std::find(taken.begin(), taken.end(), whole) != taken.end()) return false;
      taken.push_back(whole);
    }
    for (const auto& [input, chosen] : found) {
      const bool is_only = chosen.candidates == 1;
      wiring_.connect(static_cast<std::int64_t>(at), input, chosen.best,
                      is_only ? Evidence::OnlyOne : Evidence::Chosen, chosen.candidates);
      mark_read(at, input);
    }
    return true;
  }

  bool take_postponed() {
    std::size_t tried = 0;
    for (const auto& entry : postponed_) {
      if (tried++ == max_weighed) break;
      const std::size_t at = entry.second;
      if (!bind(at, false)) continue;
      place(at);
      return true;
    }
    // Rows that remain unconnected wait on the shelf of the missing shape.
    while (!postponed_.empty()) {
      const std::size_t at = postponed_.begin()->second;
      postponed_.erase(postponed_.begin());
      if (!bind(at, true)) continue;
      place(at);
      return true;
    }
    return false;
  }

  void place(std::size_t at) {
    is_placed_[at] = 1;
    wiring_.step.order.push_back(at);
    postponed_.erase({rank_[at], at});
    for (const TensorShape& input : row(at).inputs) shelf(input).postponed.erase({rank_[at], at});
    for (const TensorShape& output : row(at).outputs) --shelf(output).to_come;
    for (const std::size_t reader : readers_[at]) arrive(reader);
    readers_[at].clear();
    offer(at);
  }
  void arrive(std::size_t reader) {
    if (--waiting_[reader] == 0) make_ready(reader);
  }

  // Puts a row's outputs on the shelves of their shapes; a variable is read through its "/read".
  void offer(std::size_t at) {
    if (wiring_.table.find_node(row(at).node + "/read") >= 0) return;
    for (std::size_t port = 0; port < row(at).outputs.size(); ++port) {
      Shelf& to = shelf(row(at).outputs[port]);
      const TensorId tensor{static_cast<std::int64_t>(at), port};
      to.all.push_back(tensor);
      to.unread.push_back(tensor);
      const std::vector<std::size_t> woken = std::exchange(to.waiting, {});
      for (const std::size_t reader : woken) arrive(reader);
      std::size_t again = 0;
      for (const auto& [rank, waiting] : to.postponed) {
        if (again++ == max_woken) break;
        make_ready(waiting);
      }
    }
  }

  template <class Try>
  bool advance(std::size_t& position, const Try& attempt) {
    while (position < count_) {
      const std::size_t at = by_name_[position++];
      if (belongs_[at] != 0 && is_placed_[at] == 0 && attempt(at)) return true;
    }
    return false;
  }

  // Leaves inputs without a source if their shape has no candidate, or no further one to come.
  bool give_up(std::size_t at, bool is_strict) {
    bool gave_up = false;
    for (std::size_t input = 0; input < row(at).inputs.size(); ++input) {
      if (!is_open(at, input)) continue;
      Shelf& from = shelf(row(at).inputs[input]);
      std::size_t to_come = from.to_come;
      for (const TensorShape& output : row(at).outputs) to_come -= output == row(at).inputs[input];
      if (is_strict && to_come > 0) continue;
      if (weigh(at, input, {}).best.is_valid()) continue;
      given_up_[at].insert(input);
      if (!from.all.empty()) {
        gave_up = true;  // not waiting on a shelf
        continue;
      }
      std::erase(from.waiting, at);
      gave_up = true;
      --waiting_[at];
    }
    if (gave_up && waiting_[at] == 0) make_ready(at);
    return gave_up;
  }

  // Disconnects an edge from a tensor that is defined later.
  bool cut(std::size_t at) {
    for (std::size_t input = 0; input < row(at).inputs.size(); ++input) {
      DataSource& source = wiring_.source(static_cast<std::int64_t>(at), input);
      if (source.row < 0) {
        given_up_[at].insert(input);
        continue;
      }
      const auto from = static_cast<std::size_t>(source.row);
      if (belongs_[from] == 0 && is_placed_[from] == 0)
        return false;  // defined later, but not in a cycle
    }
    for (std::size_t input = 0; input < row(at).inputs.size(); ++input) {
      DataSource& source = wiring_.source(static_cast<std::int64_t>(at), input);
      if (source.row < 0 || is_placed_[static_cast<std::size_t>(source.row)] != 0) continue;
      std::erase(readers_[static_cast<std::size_t>(source.row)], at);
      source = {};
      given_up_[at].insert(input);
    }
    place(at);
    return true;
  }

  Wiring& wiring_;
  const std::vector<char>& belongs_;
  std::vector<char>& is_placed_;
  std::size_t count_;
  std::vector<std::size_t> rank_, by_name_;
  std::vector<std::uint64_t> is_read_;  // a bit for each output
  std::vector<std::set<std::size_t>> given_up_;
  std::vector<std::size_t> waiting_;
  std::vector<std::vector<std::size_t>> readers_;
  std::unordered_map<std::string, Shelf> shelves_;
  std::priority_queue<Priority, std::vector<Priority>, std::greater<>> ready_;
  std::set<std::pair<std::size_t, std::size_t>> postponed_;
};

}  // namespace

void Wiring::grow(const std::vector<char>& belongs) {
  FlowGrowth(*this, belongs, is_placed_).run();
}

}  // namespace tenon::documents::tensorscope
