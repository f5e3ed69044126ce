#pragma once

namespace tenon::distributed {

/// The MPI functions that Tenon uses, declared with Open MPI's ABI, in which handles are addresses
/// of exported objects. Neither building nor starting Tenon needs MPI.
struct MpiLibrary {
  using Handle = void*;
  struct Status {
    int source, tag, error, is_cancelled;
    unsigned long long byte_count;
  };
  static constexpr int kThreadMultiple = 3;

  int (*init_thread)(int*, char***, int required, int* provided) = nullptr;
  int (*comm_dup)(Handle comm, Handle* made) = nullptr;
  int (*comm_rank)(Handle comm, int* rank) = nullptr;
  int (*comm_size)(Handle comm, int* size) = nullptr;
  int (*set_errhandler)(Handle comm, Handle handler) = nullptr;
  int (*isend)(const void*, int count, Handle type, int to, int tag, Handle comm,
               Handle* request) = nullptr;
  int (*irecv)(void*, int count, Handle type, int from, int tag, Handle comm,
               Handle* request) = nullptr;
  int (*testall)(int count, Handle* requests, int* is_done, Status* statuses) = nullptr;
  int (*iprobe)(int from, int tag, Handle comm, int* is_there, Status* status) = nullptr;
  int (*recv)(void*, int count, Handle type, int from, int tag, Handle comm,
              Status* status) = nullptr;
  int (*abort)(Handle comm, int exit_code) = nullptr;
  int (*finalize)() = nullptr;
  Handle world = nullptr, byte = nullptr, errors_return = nullptr;

  /// Loads the library. Throws Error (Device) if that fails.
  MpiLibrary();
};

}  // namespace tenon::distributed
