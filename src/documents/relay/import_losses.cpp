#include "documents/relay/import_call.h"
#include "ops/families/movement.h"

namespace tenon::documents::relay {
namespace {

ImportedValue nll_loss(const CallImport& call) {
  return call.call(
      "nll_loss", {call.value(0), call.value(1), call.value(2)},
      {{"reduction", call.text("reduction")}, {"ignore_index", call.integer("ignore_index")}});
}

// Cross entropy of probabilities or of their logarithms: the mean over the batch.
ImportedValue cross_entropy(const CallImport& call) {
  const Var given = call.value(0);
  const Var logs = call.op() == "nn.cross_entropy" ? call.call("log", {given}) : given;
  const Var total =
      call.call("reduce_sum", {call.call("mul", {logs, call.value(1)})}, {{"keep_axes", false}});
  const TensorType& type = call.type(given);
  const std::optional<std::int64_t> count = type.rank() == 0 ? std::nullopt : type.dims[0].value();
  if (!count) throw call.unsupported("a batch that is known at run time only");
  const Var divisor = call.build().scalar(-static_cast<double>(*count), total);
  return call.call("div", {total, divisor});
}

// The gradient of a broadcast: the sum over all copies.
ImportedValue collapse_sum(const CallImport& call) {
  const Var x = call.value(0);
  const Dims from = call.type(x).dims, to = call.type(call.value(1)).dims;
  if (to.size() > from.size()) throw call.error("the sum would have more axes than its argument");
  const std::size_t more = from.size() - to.size();
  Attr::Integers axes;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    const bool is_summed = axis < more || !(from[axis] == to[axis - more]);
    if (is_summed) axes.push_back(static_cast<std::int64_t>(axis));
  }
  const Var sums = axes.empty() ? x : call.call("reduce_sum", {x}, {{"axes", axes}});
  return call_with("reshape", {sums}, {{"shape", to}});
}

}  // namespace

void add_loss_handlers(Handlers& handlers) {
  handlers["nn.nll_loss"] = nll_loss;
  handlers["nn.cross_entropy"] = cross_entropy;
  handlers["nn.cross_entropy_with_logits"] = cross_entropy;
  handlers["collapse_sum_like"] = collapse_sum;
}

}  // namespace tenon::documents::relay
