#pragma once

#include "base/error.h"
#include "base/shared_library.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::inline runtime::cuda {

// The CUDA driver functions in use, declared here: building needs neither NVIDIA's headers nor its
// library.
using Stream = struct CUstream_st*;
using Function = struct CUfunc_st*;
using Module = struct CUmod_st*;
using Graph = struct CUgraph_st*;
using GraphExec = struct CUgraphExec_st*;
using Event = struct CUevent_st*;
using ContextHandle = struct CUctx_st*;
using Address = std::uint64_t;

/// CUlaunchAttribute, whose value is a union of 64 bytes.
struct LaunchAttribute {
  static constexpr int kProgrammaticSerialisation = 6;
  int id = 0;
  char padding[4] = {};
  int value = 0;
  char rest[60] = {};
};
/// CUlaunchConfig.
struct LaunchConfig {
  unsigned blocks_x = 1, blocks_y = 1, blocks_z = 1, threads_x = 1, threads_y = 1, threads_z = 1;
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

/// Memory type of an address: device memory, pinned (page-locked) host memory, or pageable host
/// memory.
enum class MemoryKind : std::uint8_t { Device, Pinned, Ordinary };

/// The CUDA driver with one device: the first, or the local rank's if a launcher started several
/// processes on this machine. Members are functions of its C interface.
struct Driver {
  SharedLibrary library{
      "NVIDIA GPUs (the driver)", {"libcuda.so.1", "libcuda.so"}, {"/usr/local/nvidia/lib64"}};

  int (*error_name)(int, const char**) = nullptr;
  int (*error_text)(int, const char**) = nullptr;
  int (*launch)(const LaunchConfig*, Function, void**, void**) = nullptr;
  int (*allocate)(Address*, std::size_t) = nullptr;
  int (*free)(Address) = nullptr;
  int (*allocate_host)(void**, std::size_t, unsigned) = nullptr;
  int (*free_host)(void*) = nullptr;
  int (*to_device)(Address, const void*, std::size_t, Stream) = nullptr;
  int (*to_host)(void*, Address, std::size_t, Stream) = nullptr;
  int (*copy)(Address, Address, std::size_t, Stream) = nullptr;
  int (*fill)(Address, unsigned char, std::size_t, Stream) = nullptr;
  int (*load_module)(Module*, const void*) = nullptr;
  int (*unload_module)(Module) = nullptr;
  int (*get_function)(Function*, Module, const char*) = nullptr;
  /// Sets an attribute of a function.
  int (*set_function)(Function, int, int) = nullptr;
  int (*create_stream)(Stream*, unsigned) = nullptr;
  int (*destroy_stream)(Stream) = nullptr;
  int (*synchronise)(Stream) = nullptr;
  int (*begin_capture)(Stream, int) = nullptr;
  int (*end_capture)(Stream, Graph*) = nullptr;
  int (*instantiate)(GraphExec*, Graph, unsigned long long) = nullptr;
  int (*launch_graph)(GraphExec, Stream) = nullptr;
  int (*destroy_graph)(Graph) = nullptr;
  int (*destroy_exec)(GraphExec) = nullptr;
  int (*create_event)(Event*, unsigned) = nullptr;
  int (*destroy_event)(Event) = nullptr;
  int (*record)(Event, Stream) = nullptr;
  int (*wait_event)(Stream, Event, unsigned) = nullptr;
  int (*await_event)(Event) = nullptr;
  int (*elapsed)(float*, Event, Event) = nullptr;
  int (*set_current)(ContextHandle) = nullptr;
  int (*memory_info)(std::size_t*, std::size_t*) = nullptr;
  int (*pointer_attributes)(unsigned, int*, void**, Address) = nullptr;

  ContextHandle context = nullptr;
  std::string device_name;
  /// Compute capability.
  int major = 0, minor = 0;
  int multiprocessors = 0;
  /// E.g. 13000 for CUDA 13.0.
  int version = 0;

  /// Throws Error (Device) if the driver or a device is missing.
  Driver();
  /// Throws Error (Device), naming the failed operation, unless the status is 0.
  void require(int status, const char* what) const;
  /// Returns that error.
  Error failure(int status, const std::string& what) const;
  MemoryKind kind_of(const void* pointer) const;
  bool is_on_device(const void* pointer) const { return kind_of(pointer) == MemoryKind::Device; }
};

/// Returns the driver of this process; makes its device current for the calling thread.
const Driver& driver();

/// E.g. "1.5 GiB free of 139.8 GiB on the GPU".
std::string free_memory_text();

/// Device memory, freed by the destructor.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory();
  /// Throws Error (OutOfMemory), naming the purpose. Frees the old memory first; keeps it if it
  /// suffices.
  void allocate(std::uint64_t bytes, const std::string& purpose);
  /// Returns false, with no memory allocated, if the device has too little.
  bool try_allocate(std::uint64_t bytes);
  Address address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Address address_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tenon::inline runtime::cuda
