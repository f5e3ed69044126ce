#include "frontends/onnx/lift_weights.h"

#include "frontends/onnx/field_numbers.h"

namespace tenon::frontends::onnx {
namespace {

// Copying smaller weights costs less than separate storage.
constexpr std::uint64_t kMinLiftedBytes = 16 << 10;

struct NotWellFormed {};

struct WireField {
  int number = 0;
  bool has_length = false;
  /// with its tag
  std::span<const std::byte> whole;
  /// of a length-delimited field
  std::span<const std::byte> payload;
};

/// Iterates over the fields of one message.
class WireFields {
 public:
  explicit WireFields(std::span<const std::byte> message) : rest_(message) {}
  bool is_at_end() const { return rest_.empty(); }

  WireField next() {
    const std::span<const std::byte> start = rest_;
    const std::uint64_t tag = varint();
    WireField field;
    field.number = static_cast<int>(tag >> 3 & 0x1fffffff);
    switch (tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        field.has_length = true;
        field.payload = take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        throw NotWellFormed{};  // groups were removed with proto1
    }
    field.whole = start.first(start.size() - rest_.size());
    return field;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(take(1).front());
      number |= (byte & 127) << shift;
      if (byte < 128) return number;
    }
    throw NotWellFormed{};
  }

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size()) throw NotWellFormed{};
    const std::span<const std::byte> taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<const std::byte> rest_;
};

void append(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void append_message(std::string& out, int field, const std::string& message) {
  const auto append_varint = [&](std::uint64_t number) {
    for (; number >= 128; number >>= 7) out += static_cast<char>(number | 128);
    out += static_cast<char>(number);
  };
  append_varint(static_cast<std::uint64_t>(field) << 3 | 2);
  append_varint(message.size());
  out += message;
}

class Lifter {
 public:
  explicit Lifter(std::span<const std::byte> model) : model_(model) {}

  ModelSkeleton run() {
    for (WireFields fields(model_); !fields.is_at_end();) {
      const WireField field = fields.next();
      if (field.number == kModelGraph && field.has_length) {
        append_message(skeleton_.message, kModelGraph, without_weights(field.payload));
      } else {
        append(skeleton_.message, field.whole);
      }
    }
    return std::move(skeleton_);
  }

 private:
  std::string without_weights(std::span<const std::byte> graph) {
    std::string message;
    for (WireFields fields(graph); !fields.is_at_end();) {
      const WireField field = fields.next();
      if (field.number != kGraphInitializer || !field.has_length) {
        append(message, field.whole);
        continue;
      }
      if (field.payload.size() < kMinLiftedBytes) {
        append(message, field.whole);
      } else {
        append_message(message, kGraphInitializer, without_elements(field.payload));
      }
      ++initializer_count_;
    }
    return message;
  }

  std::string without_elements(std::span<const std::byte> tensor) {
    std::string message;
    std::optional<WireField> elements;
    for (WireFields fields(tensor); !fields.is_at_end();) {
      const WireField field = fields.next();
      const bool may_lift =
          field.has_length && (field.number == kTensorRawData || field.number == kTensorFloatData ||
                               field.number == kTensorDoubleData);
      if (!may_lift) {
        append(message, field.whole);
      } else if (elements) {
        // A repeated field in several pieces, or a singular field given twice, is left to protobuf.
        return {reinterpret_cast<const char*>(tensor.data()), tensor.size()};
      } else {
        elements = field;
      }
    }
    if (elements) {
      const auto offset = static_cast<std::uint64_t>(elements->payload.data() - model_.data());
      skeleton_.weights.push_back(
          {initializer_count_, elements->number, offset, elements->payload.size()});
    }
    return message;
  }

  std::span<const std::byte> model_;
  ModelSkeleton skeleton_;
  std::size_t initializer_count_ = 0;
};

}  // namespace

std::optional<ModelSkeleton> lift_weights(std::span<const std::byte> model) try {
  return Lifter(model).run();
} catch (const NotWellFormed&) {
  return std::nullopt;
}

}  // namespace tenon::frontends::onnx
