#include "documents/same_network.h"

#include "base/error.h"
#include "documents/native_node.h"
#include "frontends/node_attrs.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents {
namespace {

constexpr std::int64_t kMostComparedElements = std::int64_t{1} << 22;

std::string place_of(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  return concat("'", graph.value(value).name, "' (",
                producer ? graph.node(producer).op->name : "an input", ")");
}

bool same_elements(const Constant& a, const Constant& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (identical(a, b)) return true;
  if (a.kind() == b.kind() || a.size() > kMostComparedElements) return false;
  return identical(a.materialise(), b.materialise());  // one repeated element, compared exactly
}

// Walks both graphs from the outputs backwards, in parallel.
class NetworkComparison {
 public:
  NetworkComparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  NetworkDifference run() {
    compare_ports(a_.inputs(), b_.inputs(), "inputs");
    compare_ports(a_.outputs(), b_.outputs(), "outputs");
    while (!pending_.empty()) {
      const Pair pair = pending_.back();
      pending_.pop_back();
      compare(pair);
    }
    std::sort(found_.nodes.begin(), found_.nodes.end());
    found_.nodes.erase(std::unique(found_.nodes.begin(), found_.nodes.end()), found_.nodes.end());
    return std::move(found_);
  }

 private:
  struct Pair {
    ValueId a, b;
    NodeId reader;  // in `a`; invalid for an output of the graph
  };

  void note(std::string what) {
    if (found_.first.empty()) found_.first = std::move(what);
  }

  void compare_ports(const std::vector<ValueId>& x, const std::vector<ValueId>& y,
                     std::string_view what) {
    if (x.size() != y.size()) found_.are_inputs_same = what != "inputs";
    if (x.size() != y.size()) note(concat(x.size(), " ", what, " came back as ", y.size()));
    for (std::size_t k = 0; k < std::min(x.size(), y.size()); ++k) {
      if (what == "outputs") {
        pending_.push_back({x[k], y[k], {}});
        continue;
      }
      if (!is_same_type(x[k], y[k])) {
        found_.are_inputs_same = false;
        note(concat("the input '", a_.value(x[k]).name, "' of type ", a_.value(x[k]).type,
                    " came back as ", b_.value(y[k]).type));
      }
      seen_[x[k]] = y[k];
    }
  }

  // Symbols may have other names, but must correspond one to one.
  bool is_same_type(ValueId x, ValueId y) {
    const Type &s = a_.value(x).type, &t = b_.value(y).type;
    if (s == t) return true;
    if (!s.is_tensor() || !t.is_tensor()) return to_string(s) == to_string(t);
    const TensorType &p = s.tensor(), &q = t.tensor();
    if (p.dtype != q.dtype || p.layout != q.layout || p.rank() != q.rank()) return false;
    for (std::size_t k = 0; k < p.rank(); ++k) {
      const auto name = p.dims[k].symbol_name(), other = q.dims[k].symbol_name();
      if (!name || !other || renamed_.contains(*name)) continue;
      const bool is_taken = std::any_of(renamed_.begin(), renamed_.end(),
                                        [&](const auto& each) { return each.second == q.dims[k]; });
      if (!is_taken && p.dims[k].range() == q.dims[k].range()) renamed_.emplace(*name, q.dims[k]);
    }
    return substitute(p.dims, renamed_) == q.dims;
  }

  void differ(const Pair& pair, std::string what) {
    note(std::move(what));
    const NodeId producer = a_.value(pair.a).producer;
    const NodeId blamed = producer && a_.constant_of(pair.a) == nullptr ? producer : pair.reader;
    if (blamed) found_.nodes.push_back(blamed);
  }

  void compare(const Pair& pair) {
    const auto [x, y, reader] = pair;
    const Constant *p = a_.constant_of(x), *q = b_.constant_of(y);
    if (p != nullptr && q != nullptr) return compare_constants(pair, *p, *q);
    if (const auto known = seen_.find(x); known != seen_.end()) {
      if (known->second == y) return;
      differ(pair, concat(place_of(a_, x), " came back as two values"));
      if (reader) found_.nodes.push_back(reader);
      return;
    }
    seen_[x] = y;
    const NodeId from = a_.value(x).producer, to = b_.value(y).producer;
    if (!from || !to || p != nullptr || q != nullptr) {
      differ(pair, concat(place_of(a_, x), " came back as ", place_of(b_, y)));
      if (reader) found_.nodes.push_back(reader);
      return;
    }
    if (!is_same_type(x, y)) {
      return differ(pair, concat(place_of(a_, x), " of type ", a_.value(x).type,
                                 " came back as one of ", b_.value(y).type));
    }
    compare_nodes(pair, a_.node(from), b_.node(to));
  }

  void compare_constants(const Pair& pair, const Constant& p, const Constant& q) {
    if (!is_same_type(pair.a, pair.b)) {
      return differ(
          pair, concat("the constant ", place_of(a_, pair.a), " of type ", a_.value(pair.a).type,
                       " came back as one of ", b_.value(pair.b).type));
    }
    // Each constant corresponds to one constant of the other graph: a second counterpart means that
    // one of the readers is wired wrongly.
    const auto [known, is_new] = holds_.try_emplace(pair.b, pair);
    if (!is_new && known->second.a != pair.a &&
        !same_elements(p, *a_.constant_of(known->second.a))) {
      differ(pair, concat("the constants ", place_of(a_, pair.a), " and ",
                          place_of(a_, known->second.a), " came back as one"));
      if (known->second.reader) found_.nodes.push_back(known->second.reader);
      return;
    }
    if (same_elements(p, q)) return;
    if (fits_text(a_, pair.a)) {
      return differ(pair, concat("the constant ", place_of(a_, pair.a), " lost its elements"));
    }
    if (constants_.insert({pair.a, pair.b}).second) found_.constants.emplace_back(pair.a, pair.b);
  }

  // Some attributes have several equivalent forms.
  bool same_attributes(const Node& x, const Node& y) const {
    if (x.attrs == y.attrs) return true;
    Attributes p = x.attrs, q = y.attrs;
    const auto without = [&](std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) {
        p.erase(name);
        q.erase(name);
      }
      return p == q;
    };
    // The types were compared.
    if (x.op->name == "reshape" && x.operands.size() == 1) return without({"shape", "allow_zero"});
    if (x.op->name == "transpose") {
      const std::size_t rank = a_.value(x.operands[0]).type.tensor().rank();
      return order_of(x, rank) == order_of(y, rank) && without({"perm"});
    }
    if (p.find("pads") != nullptr || q.find("pads") != nullptr || p.find("strides") != nullptr ||
        q.find("strides") != nullptr || p.find("dilations") != nullptr ||
        q.find("dilations") != nullptr) {
      return without_usual_window(p) == without_usual_window(q);
    }
    if (x.op->name == "einsum")
      return frontends::plain_equation(frontends::text_of(x, "equation")) ==
                 frontends::plain_equation(frontends::text_of(y, "equation")) &&
             without({"equation"});
    return false;
  }

  // Strides of one and zero padding are defaults of windows.
  static Attributes without_usual_window(Attributes attrs) {
    for (const auto& [name, usual] : {std::pair("strides", 1), std::pair("dilations", 1),
                                      std::pair("pads", 0), std::pair("output_padding", 0)}) {
      const AttrValue* given = attrs.find(name);
      const Dims* dims = given == nullptr ? nullptr : std::get_if<Dims>(given);
      const bool is_usual =
          dims != nullptr && std::all_of(dims->begin(), dims->end(),
                                         [&](const Dim& dim) { return dim == Dim(usual); });
      if (is_usual) attrs.erase(name);
    }
    return attrs;
  }

  // The default permutation reverses the axes.
  static Dims order_of(const Node& node, std::size_t rank) {
    const Dims* dims = frontends::attr_of<Dims>(node, "perm");
    if (dims != nullptr && !dims->empty()) return *dims;
    Dims reversed;
    for (std::size_t k = rank; k > 0; --k) reversed.emplace_back(static_cast<std::int64_t>(k - 1));
    return reversed;
  }

  void compare_nodes(const Pair& pair, const Node& x, const Node& y) {
    const auto index_of = [](const Node& node, ValueId value) {
      return std::find(node.results.begin(), node.results.end(), value) - node.results.begin();
    };
    const auto has_same_gaps = [](const std::vector<ValueId>& v, const std::vector<ValueId>& w) {
      return std::equal(v.begin(), v.end(), w.begin(), w.end(), [](ValueId s, ValueId t) {
        return static_cast<bool>(s) == static_cast<bool>(t);
      });
    };
    const bool has_same_bodies = std::equal(x.bodies.begin(), x.bodies.end(), y.bodies.begin(),
                                            y.bodies.end(), [](const Graph& v, const Graph& w) {
                                              const NetworkDifference inside = difference(v, w);
                                              return inside.is_same() && inside.constants.empty();
                                            });
    const bool has_same_results = x.op->results.empty() || !x.op->results.back().is_variadic ||
                                  x.results.size() == y.results.size();
    if (x.op != y.op || !has_same_results || index_of(x, pair.a) != index_of(y, pair.b) ||
        !same_attributes(x, y) || !has_same_gaps(x.operands, y.operands) || !has_same_bodies) {
      return differ(pair, concat(place_of(a_, pair.a), " came back as ", place_of(b_, pair.b),
                                 x.op == y.op ? " with other attributes or operands" : ""));
    }
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      if (x.operands[k])
        pending_.push_back({x.operands[k], y.operands[k], a_.value(pair.a).producer});
    }
  }

  const Graph &a_, &b_;
  std::vector<Pair> pending_;
  std::unordered_map<ValueId, ValueId> seen_;
  std::set<std::pair<ValueId, ValueId>> constants_;
  std::unordered_map<ValueId, Pair> holds_;  // by constant of `b`: its first counterpart
  DimBindings renamed_;
  NetworkDifference found_;
};

}  // namespace

NetworkDifference difference(const Graph& a, const Graph& b) {
  return NetworkComparison(a, b).run();
}

}  // namespace tenon::documents
