#include "distributed/cluster.h"

#include "base/error.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace tenon::distributed {
namespace {

using ClusterJson = nlohmann::json;

Error bad(std::string_view source, std::string_view field) {
  return Error("a description of a cluster cannot be read", ErrorKind::Usage)
      .at(source, ", ", field);
}

double positive(const ClusterJson& json, const char* name, std::string_view source) {
  const auto found = json.find(name);
  if (found == json.end()) throw bad(source, name).got("no such field");
  const double value = found->is_number() ? found->get<double>() : -1;
  if (!std::isfinite(value) || value <= 0 || value > 1e24)
    throw bad(source, name).expected("a positive number").got(found->dump());
  return value;
}

std::string text_of(const ClusterJson& json, const char* name, std::string_view source) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) throw bad(source, name).expected("a text");
  return found->get<std::string>();
}

std::int64_t rank_count_of(const ClusterJson& json, std::string_view source) {
  const double count = positive(json, "ranks", source);
  if (count != std::floor(count) || count > 1e7)
    throw bad(source, "ranks").expected("a whole number").got(count);
  return static_cast<std::int64_t>(count);
}

void refuse_others(const ClusterJson& json, const std::vector<std::string>& known,
                   std::string_view source) {
  if (!json.is_object()) throw bad(source, "").expected("a JSON object");
  for (const auto& [name, value] : json.items()) {
    if (std::ranges::find(known, name) == known.end())
      throw bad(source, name).got("a field that nobody reads").hint(suggest_name(name, known));
  }
}

}  // namespace

Cluster parse_cluster(std::string_view text, std::string_view source) {
  const ClusterJson json = ClusterJson::parse(text, nullptr, false);
  if (json.is_discarded())
    throw Error("a description of a cluster is no JSON", ErrorKind::Usage).at(source);
  refuse_others(json, {"name", "ranks", "device", "start_s", "exchange", "links"}, source);
  Cluster cluster;
  cluster.name = text_of(json, "name", source);
  cluster.ranks = rank_count_of(json, source);
  if (!json.contains("device")) throw bad(source, "device").got("no such field");
  cluster.device = memory::parse_device(json.at("device").dump(), concat(source, ", device"));
  if (json.contains("start_s")) cluster.start_s = positive(json, "start_s", source);
  const std::string exchange = text_of(json, "exchange", source);
  if (exchange != "direct" && exchange != "hierarchical")
    throw bad(source, "exchange").expected("direct or hierarchical").got(exchange);
  cluster.is_hierarchical = exchange == "hierarchical";
  const auto links = json.find("links");
  if (links == json.end() || !links->is_array() || links->empty())
    throw bad(source, "links").expected("a list of links, the innermost first");
  for (const ClusterJson& link : *links) {
    refuse_others(link, {"name", "ranks", "bytes_per_s", "latency_s"}, source);
    cluster.tiers.push_back({text_of(link, "name", source), rank_count_of(link, source),
                             positive(link, "bytes_per_s", source),
                             positive(link, "latency_s", source)});
    const std::size_t count = cluster.tiers.size();
    const bool grows =
        count == 1 || (cluster.tiers[count - 1].ranks > cluster.tiers[count - 2].ranks &&
                       cluster.tiers[count - 1].ranks % cluster.tiers[count - 2].ranks == 0);
    if (!grows)
      throw bad(source, "links").expected("each joins a multiple of the ranks of the one before");
  }
  if (cluster.tiers.back().ranks < cluster.ranks)
    throw bad(source, "links")
        .expected("the last joins all ", cluster.ranks, " ranks")
        .got(cluster.tiers.back().ranks);
  return cluster;
}

Cluster::Exchange Cluster::exchange(std::int64_t rank_count, double bytes) const {
  Exchange made;
  made.bytes.assign(tiers.size(), 0);
  double left = bytes;      // bytes of a rank that the next tier still reduces
  std::int64_t inside = 1;  // ranks in a group of the previous tier
  for (std::size_t k = 0; k < tiers.size() && inside < rank_count; ++k) {
    const Tier& tier = tiers[k];
    const std::int64_t group = std::min(rank_count, tier.ranks);
    const auto groups = static_cast<double>((group + inside - 1) / inside);
    if (is_hierarchical) {
      made.bytes[k] = left * (groups - 1) / groups;
      made.seconds += made.bytes[k] / tier.bytes_per_s + tier.latency_s * std::log2(groups);
      left /= groups;
    } else {
      // One piece per rank; pieces for ranks outside the previous tier's group use this tier.
      const auto others = static_cast<double>(group - inside);
      made.bytes[k] = bytes / static_cast<double>(rank_count) * others;
      made.seconds += made.bytes[k] / tier.bytes_per_s + tier.latency_s * others;
    }
    inside = group;
  }
  return made;
}

}  // namespace tenon::distributed
