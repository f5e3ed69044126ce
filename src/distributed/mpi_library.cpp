#include "distributed/mpi_library.h"

#include "base/error.h"

#include <dlfcn.h>

namespace tenon::distributed {
namespace {

constexpr const char* kLibrary = "libmpi.so.40";  // Open MPI 2 to 5

}  // namespace

MpiLibrary::MpiLibrary() {
  // RTLD_GLOBAL: plugins of the library resolve its symbols.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw Error(concat("--parallel needs MPI, and ", kLibrary,
                       " cannot be loaded: install Open MPI (Debian: openmpi-bin)"),
                ErrorKind::Device);
  }
  const auto find = [&]<class T>(T& target, const char* name) {
    void* found = dlsym(library, name);
    if (found == nullptr)
      throw Error(concat(kLibrary, " is no Open MPI: it has no ", name), ErrorKind::Device);
    target = reinterpret_cast<T>(found);
  };
  find(init_thread, "MPI_Init_thread");
  find(comm_dup, "MPI_Comm_dup");
  find(comm_rank, "MPI_Comm_rank");
  find(comm_size, "MPI_Comm_size");
  find(set_errhandler, "MPI_Comm_set_errhandler");
  find(isend, "MPI_Isend");
  find(irecv, "MPI_Irecv");
  find(testall, "MPI_Testall");
  find(iprobe, "MPI_Iprobe");
  find(recv, "MPI_Recv");
  find(abort, "MPI_Abort");
  find(finalize, "MPI_Finalize");
  find(world, "ompi_mpi_comm_world");
  find(byte, "ompi_mpi_byte");
  find(errors_return, "ompi_mpi_errors_return");
}

}  // namespace tenon::distributed
