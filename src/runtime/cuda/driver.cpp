#include "runtime/cuda/driver.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace tenon::inline runtime::cuda {
namespace {

// Returns the local rank of this process among those started by an MPI or SLURM launcher.
int rank_on_machine() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    if (const char* text = std::getenv(variable)) return std::max(0, std::atoi(text));
  }
  return 0;
}

}  // namespace

Driver::Driver() {
  library.find(error_name, "cuGetErrorName");
  library.find(error_text, "cuGetErrorString");
  library.find(launch, "cuLaunchKernelEx");
  library.find(allocate, "cuMemAlloc_v2");
  library.find(free, "cuMemFree_v2");
  library.find(allocate_host, "cuMemHostAlloc");
  library.find(free_host, "cuMemFreeHost");
  library.find(to_device, "cuMemcpyHtoDAsync_v2");
  library.find(to_host, "cuMemcpyDtoHAsync_v2");
  library.find(copy, "cuMemcpyDtoDAsync_v2");
  library.find(fill, "cuMemsetD8Async");
  library.find(load_module, "cuModuleLoadData");
  library.find(unload_module, "cuModuleUnload");
  library.find(get_function, "cuModuleGetFunction");
  library.find(set_function, "cuFuncSetAttribute");
  library.find(create_stream, "cuStreamCreate");
  library.find(destroy_stream, "cuStreamDestroy_v2");
  library.find(synchronise, "cuStreamSynchronize");
  library.find(begin_capture, "cuStreamBeginCapture_v2");
  library.find(end_capture, "cuStreamEndCapture");
  library.find(instantiate, "cuGraphInstantiateWithFlags");
  library.find(launch_graph, "cuGraphLaunch");
  library.find(destroy_graph, "cuGraphDestroy");
  library.find(destroy_exec, "cuGraphExecDestroy");
  library.find(create_event, "cuEventCreate");
  library.find(destroy_event, "cuEventDestroy_v2");
  library.find(record, "cuEventRecord");
  library.find(wait_event, "cuStreamWaitEvent");
  library.find(await_event, "cuEventSynchronize");
  library.find(elapsed, "cuEventElapsedTime");
  library.find(set_current, "cuCtxSetCurrent");
  library.find(memory_info, "cuMemGetInfo_v2");
  library.find(pointer_attributes, "cuPointerGetAttributes");

  int (*initialise)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*retain)(ContextHandle*, int) = nullptr;
  int (*get_version)(int*) = nullptr;
  library.find(initialise, "cuInit");
  library.find(count, "cuDeviceGetCount");
  library.find(get, "cuDeviceGet");
  library.find(name, "cuDeviceGetName");
  library.find(attribute, "cuDeviceGetAttribute");
  library.find(retain, "cuDevicePrimaryCtxRetain");
  library.find(get_version, "cuDriverGetVersion");
  require(initialise(0), "starting the driver");
  int devices = 0;
  require(count(&devices), "counting devices");
  if (devices == 0) throw Error("no NVIDIA GPU in this machine", ErrorKind::Device);
  int device = 0;
  require(get(&device, rank_on_machine() % devices), "opening the device");
  std::array<char, 128> text{};
  require(name(text.data(), static_cast<int>(text.size()), device), "asking for the device's name");
  device_name = text.data();
  constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;
  require(attribute(&multiprocessors, kMultiprocessors, device), "asking about the device");
  require(attribute(&major, kMajor, device), "asking about the device");
  require(attribute(&minor, kMinor, device), "asking about the device");
  require(get_version(&version), "asking for the driver's version");
  require(retain(&context, device), "making a context");
}

void Driver::require(int status, const char* what) const {
  if (status != 0) throw failure(status, what);
}

Error Driver::failure(int status, const std::string& what) const {
  const char *name = nullptr, *text = nullptr;
  error_name(status, &name);
  error_text(status, &text);
  constexpr int kOutOfMemory = 2;
  return Error(concat("the GPU failed: ", what),
               status == kOutOfMemory ? ErrorKind::OutOfMemory : ErrorKind::Device)
      .got(name == nullptr ? std::to_string(status) : std::string(name),
           text == nullptr ? "" : concat(" (", text, ")"));
}

// Memory unknown to the driver is host memory: this query then returns 0 without an error. A query
// of a single attribute would fail instead, which debugging tools report.
MemoryKind Driver::kind_of(const void* pointer) const {
  constexpr int kHost = 1, kDevice = 2;
  int wanted = 2, type = 0;  // attribute: memory type
  void* found = &type;
  const int status = pointer_attributes(1, &wanted, &found, reinterpret_cast<Address>(pointer));
  if (status != 0) return MemoryKind::Ordinary;
  return type == kDevice ? MemoryKind::Device
         : type == kHost ? MemoryKind::Pinned
                         : MemoryKind::Ordinary;
}

const Driver& driver() {
  static const Driver loaded;
  loaded.require(loaded.set_current(loaded.context), "using the device");
  return loaded;
}

DeviceMemory::~DeviceMemory() {
  if (address_ != 0) driver().free(address_);
}

std::string free_memory_text() {
  std::size_t free = 0, total = 0;
  driver().memory_info(&free, &total);
  return concat(format_bytes(free), " free of ", format_bytes(total), " on the GPU");
}

bool DeviceMemory::try_allocate(std::uint64_t bytes) {
  if (bytes <= bytes_) return true;
  const Driver& cuda = driver();
  if (address_ != 0) cuda.free(address_);
  address_ = bytes_ = 0;
  if (cuda.allocate(&address_, bytes) != 0) {
    address_ = 0;
    return false;
  }
  bytes_ = bytes;
  return true;
}

void DeviceMemory::allocate(std::uint64_t bytes, const std::string& purpose) {
  if (try_allocate(bytes)) return;
  throw Error(concat("no memory on the GPU for ", purpose), ErrorKind::OutOfMemory)
      .expected(format_bytes(bytes))
      .got(free_memory_text());
}

}  // namespace tenon::inline runtime::cuda
