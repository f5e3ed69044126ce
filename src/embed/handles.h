#pragma once

#include "base/error.h"
#include "tenon/tenon.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace tenon::embed {

/// Handles of the C ABI: numbers that encode kind, table index and generation instead of pointers.
/// Freed handles, handles of another kind and arbitrary numbers are detected without dereferencing
/// memory. A call keeps the object alive even if another thread frees the handle.
///
/// The table is a mutable global, which the ABI requires: handles live from call to call.
template <class T, class Handle, std::uint64_t kKind>
class Handles {
 public:
  explicit Handles(const char* what) : what_(what) {}

  Handle add(std::shared_ptr<T> object) {
    const std::unique_lock lock(mutex_);
    std::size_t index = slots_.size();
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      free_.reserve(slots_.size() + 1);  // so that removal cannot fail
      slots_.emplace_back();
    }
    slots_[index].object = std::move(object);
    return handle_of(index);
  }

  /// Throws Error (Usage) for an invalid or freed handle.
  std::shared_ptr<T> find(Handle handle) const {
    const std::shared_lock lock(mutex_);
    return slots_[index_of(handle)].object;
  }

  void remove(Handle handle) {
    std::shared_ptr<T> object;  // destroyed after the lock is released
    const std::unique_lock lock(mutex_);
    const std::size_t index = index_of(handle);
    object = std::move(slots_[index].object);
    slots_[index].object.reset();
    ++slots_[index].generation;
    free_.push_back(index);
  }

 private:
  static constexpr std::uint64_t kGenerations = 1 << 24;
  struct Slot {
    std::shared_ptr<T> object;
    std::uint64_t generation = 0;
  };

  Handle handle_of(std::size_t index) const {
    const std::uint64_t number =
        kKind << 56 | slots_[index].generation % kGenerations << 32 | (index + 1);
    return reinterpret_cast<Handle>(number);  // NOLINT: a number that C carries as a pointer
  }

  std::size_t index_of(Handle handle) const {
    const auto number = reinterpret_cast<std::uint64_t>(handle);
    if (number == 0) throw Error(concat("the ", what_, " is null"), ErrorKind::Usage);
    const std::uint64_t index = (number & 0xffffffff) - 1;
    if (number >> 56 != kKind || index >= slots_.size())
      throw Error(concat("this is no handle of a ", what_), ErrorKind::Usage);
    if (handle_of(index) != handle || slots_[index].object == nullptr)
      throw Error(concat("the ", what_, " was freed"), ErrorKind::Usage);
    return index;
  }

  const char* what_;
  mutable std::shared_mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
};

}  // namespace tenon::embed
