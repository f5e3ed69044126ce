#include "host/loop.h"

#include "base/error.h"
#include "ops/definition/operand_types.h"
#include "ops/families/sequences.h"
#include "ops/families/tensor_parts.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tenon::inline host {
namespace {

bool holds(const Tensor& condition) {
  if (condition.size() != 1)
    throw Error("loop: the condition must be one element").got(condition.type());
  return condition.integer_at(0) != 0;
}

class LoopRun {
 public:
  LoopRun(const LoopStep& loop, const std::string& name, RunValues& values)
      : loop_(loop), name_(name), values_(values) {}

  void run(const std::function<void()>& run_body) {
    find_count();
    bool goes_on = loop_.condition == kNoBuffer || holds(values_.tensor(loop_.condition));
    begin_carried();
    begin_scanned();
    begin_stacked();
    const bool counts_in_place = loop_.counter != kNoBuffer && values_.is_tensor(loop_.counter);
    if (counts_in_place) values_.set_window(loop_.counter, reinterpret_cast<std::byte*>(&run_), {});
    if (loop_.goes_on != kNoBuffer)
      values_.set(loop_.goes_on, Tensor::of<int>(DType::Bool, {}, {1}));
    for (run_ = 0; run_ < limit_ && goes_on; ++run_) {
      if (loop_.counter != kNoBuffer && !counts_in_place) {
        values_.set(loop_.counter, Tensor::of<std::int64_t>(DType::I64, {}, {run_}));
      }
      for (std::size_t k = 0; k < loop_.carried.size(); ++k) give_carried(k);
      for (std::size_t k = 0; k < loop_.scanned.size(); ++k) give_scanned(k);
      for (std::size_t k = 0; k < loop_.stacked.size(); ++k) give_stacked(k);
      run_body();
      if (loop_.condition != kNoBuffer) goes_on = holds(values_.tensor(loop_.next_condition));
      for (std::size_t k = 0; k < loop_.carried.size(); ++k) take_carried(k);
      for (std::size_t k = 0; k < loop_.stacked.size(); ++k) take_stacked(k);
    }
    for (std::size_t k = 0; k < loop_.carried.size(); ++k) end_carried(k);
    for (std::size_t k = 0; k < loop_.stacked.size(); ++k) end_stacked(k);
  }

 private:
  void find_count() {
    if (loop_.trip_count != kNoBuffer) {
      const Tensor count = values_.tensor(loop_.trip_count);
      if (count.size() != 1)
        throw Error("loop: the trip count must be one element").got(count.type());
      limit_ = count.integer_at(0);
    }
    bool has_count = false;
    for (const LoopStep::Scanned& each : loop_.scanned) {
      const Datum source = values_.get(each.source);
      if (each.is_sequence && source.is_tensor()) {  // passed whole
        if (&each == loop_.scanned.data()) {
          throw Error("sequence_map: the first input must be a sequence")
              .at("node '", name_, "'")
              .got(source.type());
        }
        continue;
      }
      const std::int64_t count =
          source.is_tensor()
              ? source.tensor().shape()[normal_axis("scan", each.axis, source.tensor().rank())]
              : static_cast<std::int64_t>(source.items().size());
      if (has_count && count != limit_) {
        throw Error(each.is_sequence ? "sequence_map: sequences differ in length"
                                     : "scan: scanned inputs differ in length")
            .at("node '", name_, "'")
            .expected(limit_)
            .got(count);
      }
      limit_ = count;
      has_count = true;
    }
    is_counted_ = loop_.condition == kNoBuffer && limit_ != kEndless;
  }

  // Double buffering of a carried value: one buffer is read while the other is written.
  struct Carried {
    Datum now;  // current value, unless carried directly
    bool is_optional = false;
    bool is_planned = false;  // both buffers are in the arena or belong to the caller
    Tensor places[2];         // otherwise
    std::byte* targets[2] = {nullptr, nullptr};
    std::byte* source = nullptr;  // input of the next iteration
    std::uint64_t bytes = 0;
  };

  void begin_carried() {
    carried_.resize(loop_.carried.size());
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      const LoopStep::Carried& described = loop_.carried[k];
      Carried& each = carried_[k];
      each.now = values_.get(described.initial);
      each.is_optional = each.now.kind() == Type::Kind::Optional;
      if (!described.is_direct) {
        each.now = values_.kept(described.initial);
        continue;
      }
      const Tensor initial = values_.tensor(described.initial);
      each.bytes = initial.byte_size();
      each.source = const_cast<std::byte*>(initial.bytes().data());  // NOLINT: only read
      values_.set_window(described.in, each.source, initial.shape());
      const std::uint32_t where[2] = {described.result, described.spare};
      each.is_planned = described.result != kNoBuffer && described.spare != kNoBuffer;
      for (std::size_t place = 0; place < 2; ++place) {
        if (each.is_planned) {
          if (values_.shape(where[place]) != initial.shape())
            refuse("a carried value changes its shape");
          each.targets[place] = values_.address(where[place]);
        } else {
          each.places[place] = values_.make_tensor(described.out, initial.shape());
          each.targets[place] = const_cast<std::byte*>(
              each.places[place].bytes().data());  // NOLINT: kernels write it
        }
      }
      values_.set_window(described.out, each.targets[0], initial.shape());
    }
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(concat("loop: ", what)).at("node '", name_, "'");
  }

  // If the trip count is known, the last iteration writes to the result buffer.
  std::size_t target_of_run() const {
    return static_cast<std::size_t>(is_counted_ ? (limit_ - 1 - run_) % 2 : run_ % 2);
  }

  void give_carried(std::size_t k) {
    const LoopStep::Carried& described = loop_.carried[k];
    Carried& each = carried_[k];
    if (described.is_direct) {
      values_.move_window(described.in, each.source);
      values_.move_window(described.out, each.targets[target_of_run()]);
      return;
    }
    // A body may unwrap an optional; the next iteration expects an optional again.
    const bool is_bare = each.is_optional && each.now.kind() != Type::Kind::Optional;
    values_.set(described.in, is_bare ? Datum::optional(std::move(each.now)) : std::move(each.now));
  }

  void take_carried(std::size_t k) {
    const LoopStep::Carried& described = loop_.carried[k];
    if (described.is_direct) {
      carried_[k].source = carried_[k].targets[target_of_run()];
    } else {
      carried_[k].now = values_.kept(described.out);
    }
  }

  void end_carried(std::size_t k) {
    const LoopStep::Carried& described = loop_.carried[k];
    Carried& each = carried_[k];
    if (described.result == kNoBuffer) return;
    if (!described.is_direct) return values_.set(described.result, std::move(each.now));
    if (each.is_planned) {
      if (each.source != each.targets[0] && each.bytes > 0)
        std::memmove(each.targets[0], each.source, each.bytes);
      return;
    }
    if (each.source == each.targets[0])
      return values_.set(described.result, std::move(each.places[0]));
    if (each.source == each.targets[1])
      return values_.set(described.result, std::move(each.places[1]));
    values_.set(described.result, values_.kept(described.initial));
  }

  struct Scanned {
    Datum source;
    std::size_t axis = 0;
    bool is_window = false;
    std::byte* begin = nullptr;
    std::int64_t stride = 0;
  };

  void begin_scanned() {
    for (const LoopStep::Scanned& described : loop_.scanned) {
      Scanned& each = scanned_.emplace_back();
      each.source = values_.get(described.source);
      if (described.is_sequence) continue;
      const Tensor& tensor = each.source.tensor();
      each.axis = normal_axis("scan", described.axis, tensor.rank());
      each.is_window = each.axis == 0 && tensor.dtype() != DType::String && limit_ > 0 &&
                       values_.is_tensor(described.in);
      if (!each.is_window) continue;
      each.stride = static_cast<std::int64_t>(tensor.byte_size()) / limit_;
      each.begin = const_cast<std::byte*>(tensor.bytes().data());  // NOLINT: only read
      values_.set_window(described.in, each.begin,
                         Shape(tensor.shape().begin() + 1, tensor.shape().end()));
    }
  }

  void give_scanned(std::size_t k) {
    const LoopStep::Scanned& described = loop_.scanned[k];
    const Scanned& each = scanned_[k];
    const std::int64_t position = described.is_reversed ? limit_ - 1 - run_ : run_;
    if (each.is_window) {
      values_.move_window(described.in, each.begin + position * each.stride);
    } else if (described.is_sequence && each.source.is_tensor()) {
      values_.set(described.in, each.source);
    } else if (each.source.is_tensor()) {
      values_.set(described.in, slice_at(each.source.tensor(), each.axis, position));
    } else {
      values_.set(described.in, each.source.items()[static_cast<std::size_t>(position)]);
    }
  }

  struct Stacked {
    Tensor made;  // memory of a slot
    std::byte* begin = nullptr;
    std::int64_t stride = 0;
    std::vector<Datum> parts;
  };

  void begin_stacked() {
    for (const LoopStep::Stacked& described : loop_.stacked) {
      Stacked& each = stacked_.emplace_back();
      if (!described.is_direct) continue;
      const Shape shape = values_.shape(described.result);
      if (!is_counted_ || shape.empty() || shape.front() != std::max<std::int64_t>(limit_, 0)) {
        refuse("its results are of another length");
      }
      each.begin = values_.address(described.result);
      if (!values_.is_planned(described.result)) {
        each.made = values_.make_tensor(described.result, shape);
        each.begin = const_cast<std::byte*>(each.made.bytes().data());  // NOLINT: kernels write it
      }
      const Shape part(shape.begin() + 1, shape.end());
      std::int64_t bytes = values_.element_bytes(described.result);
      for (const std::int64_t extent : part) bytes *= extent;
      each.stride = bytes;
      values_.set_window(described.out, each.begin, part);
    }
  }

  void give_stacked(std::size_t k) {
    const LoopStep::Stacked& described = loop_.stacked[k];
    if (!described.is_direct) return;
    const std::int64_t position = described.is_reversed ? limit_ - 1 - run_ : run_;
    values_.move_window(described.out, stacked_[k].begin + position * stacked_[k].stride);
  }

  void take_stacked(std::size_t k) {
    if (loop_.stacked[k].is_direct) return;
    stacked_[k].parts.push_back(values_.kept(loop_.stacked[k].out));
    const Datum& part = stacked_[k].parts.back();
    const bool has_length = loop_.trip_count != kNoBuffer || !loop_.scanned.empty();
    if (run_ == 0 && has_length && loop_.condition == kNoBuffer && part.is_tensor())
      require_stack_memory(part.tensor(), limit_);
  }

  void end_stacked(std::size_t k) {
    const LoopStep::Stacked& described = loop_.stacked[k];
    Stacked& each = stacked_[k];
    if (described.is_direct) {
      if (!values_.is_planned(described.result))
        values_.set(described.result, std::move(each.made));
      return;
    }
    if (described.is_sequence)
      return values_.set(described.result,
                         sequence_of(std::move(each.parts), values_.item_dtype(described.result)));
    if (each.parts.empty())
      return values_.set(described.result, values_.empty_tensor(described.result));
    if (described.is_reversed) std::ranges::reverse(each.parts);
    std::vector<Tensor> tensors;
    for (const Datum& part : each.parts) tensors.push_back(part.tensor());
    const std::string_view op = loop_.scanned.empty() ? "loop" : "scan";
    values_.set(
        described.result,
        stack_along(op, tensors, normal_axis(op, described.axis, tensors.front().rank() + 1)));
  }

  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  const LoopStep& loop_;
  const std::string& name_;
  RunValues& values_;
  std::int64_t limit_ = kEndless, run_ = 0;
  bool is_counted_ = false;  // the trip count is known in advance
  std::vector<Carried> carried_;
  std::vector<Scanned> scanned_;
  std::vector<Stacked> stacked_;
};

}  // namespace

void run_loop(const LoopStep& loop, const std::string& name, RunValues& values,
              const std::function<void()>& run_body) {
  try {
    LoopRun(loop, name, values).run(run_body);
  } catch (Error& error) {
    if (!error.has_place()) error.at("node '", name, "'");
    throw;
  }
}

}  // namespace tenon::inline host
