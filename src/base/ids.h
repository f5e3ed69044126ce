#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

namespace tenon::inline base {

/// Typed index of an item in its owner; ids of different kinds do not mix.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}
  constexpr bool is_valid() const { return index_ != kNone; }
  constexpr explicit operator bool() const { return is_valid(); }
  constexpr std::uint32_t index() const { return index_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t index_ = kNone;
};

/// Dense map from ids to values, grown on demand; unset entries are `T{}`.
template <class Key, class T>
class IdMap {
 public:
  IdMap() = default;
  explicit IdMap(std::size_t count, T value = T{}) : items_(count, value), default_(value) {}

  T& operator[](Key key) {
    if (key.index() >= items_.size()) items_.resize(key.index() + 1, default_);
    return items_[key.index()];
  }
  const T& operator[](Key key) const {
    return key.index() < items_.size() ? items_[key.index()] : default_;
  }
  std::size_t size() const { return items_.size(); }

 private:
  std::vector<T> items_;
  T default_{};
};

}  // namespace tenon::inline base

template <class Tag>
struct std::hash<tenon::Id<Tag>> {
  std::size_t operator()(tenon::Id<Tag> id) const noexcept { return id.index(); }
};
