"""Tensors in GPU memory: imported from and exported to other libraries by DLPack, without copies."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Sequence

import numpy as np

from ._library import DeviceError, UsageError
from ._tensors import DTYPES, NUMBERS

CPU, CUDA, CUDA_HOST = 1, 2, 3  # DLPack's device types


class _DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _DLDevice), ("ndim", ctypes.c_int32), ("dtype", _DLDataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensor(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [("dl_tensor", _DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", _DELETER)]

_CODES = {0: "i", 1: "u", 2: "f", 4: "bf", 5: "c", 6: "bool"}
_NUMBERS_OF_CODES = {text: code for code, text in _CODES.items()}

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
# Functions that take a capsule by address, for its destructor, which must not create references to it.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_NEW, _USED = b"dltensor", b"used_dltensor"  # capsules keep the address of their name


class _Driver:
    """Functions of NVIDIA's driver. Uses the primary context of the first device, as the library does."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DeviceError(f"NVIDIA GPUs (the driver) cannot be used here\n  got       {error}") from None
        self._context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise DeviceError(f"the GPU failed: {name} gives {status}")

    def here(self, name: str, *arguments: Any) -> None:
        """Calls a function with the device current for this thread."""
        self.call("cuCtxSetCurrent", self._context)
        self.call(name, *arguments)


_driver_lock = threading.Lock()
_the_driver: _Driver | None = None


def driver() -> _Driver:
    global _the_driver
    with _driver_lock:
        if _the_driver is None:
            _the_driver = _Driver()
        return _the_driver


class _Block:
    """GPU memory from a small pool: freed blocks serve later results of their size."""

    _store: dict[int, list[int]] = {}
    _MOST = 8  # pooled blocks per size

    def __init__(self, size: int) -> None:
        self.size = max(size, 256)
        kept = self._store.get(self.size)
        if kept:
            self.pointer = kept.pop()
            return
        pointer = ctypes.c_uint64()
        driver().here("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(self.size))
        self.pointer = pointer.value

    def __del__(self) -> None:
        if not hasattr(self, "pointer"):
            return
        kept = self._store.setdefault(self.size, [])
        if len(kept) < self._MOST:
            kept.append(self.pointer)
        else:
            driver().here("cuMemFree_v2", ctypes.c_uint64(self.pointer))


class _Borrowed:
    """A tensor of another library, released with its last reference."""

    def __init__(self, managed: Any, source: Any) -> None:
        self._managed, self._source = managed, source

    def __del__(self) -> None:
        if self._managed is not None and self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


class DeviceArray:
    """A row-major tensor in GPU memory. `torch.from_dlpack(array)` and similar functions share the memory."""

    def __init__(self, pointer: int, shape: Sequence[int], type_name: str, device: int, owner: Any) -> None:
        self.pointer, self.shape, self.type, self.device = pointer, tuple(shape), type_name, device
        self._owner = owner

    @staticmethod
    def empty(shape: Sequence[int], type_name: str) -> "DeviceArray":
        block = _Block(_element_bytes(type_name) * int(np.prod(shape, dtype=np.int64)))
        return DeviceArray(block.pointer, shape, type_name, 0, block)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return _element_bytes(self.type) * int(np.prod(self.shape, dtype=np.int64))

    def numpy(self) -> np.ndarray:
        """Returns a copy in host memory."""
        made = np.empty(self.shape, DTYPES[NUMBERS[self.type]][1])
        if made.nbytes:
            driver().here("cuMemcpyDtoH_v2", ctypes.c_void_p(made.ctypes.data), ctypes.c_uint64(self.pointer),
                          ctypes.c_size_t(made.nbytes))
        return made

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: Any = None, **_unused: Any) -> Any:
        """Exports the tensor. Its run has ended, so consumers do not wait for a stream."""
        return capsule_of(self)

    def __repr__(self) -> str:
        return f"<tenon.DeviceArray {self.type}{list(self.shape)} on cuda:{self.device}>"


def _element_bytes(type_name: str) -> int:
    return DTYPES[NUMBERS[type_name]][1].itemsize


def _dl_type(type_name: str) -> _DLDataType:
    word = type_name.rstrip("0123456789")
    bits = 8 if word == "bool" else int(type_name[len(word):] or 0)
    if word not in _NUMBERS_OF_CODES or bits % 8 != 0:
        raise UsageError(f"DLPack has no element type for {type_name}")
    return _DLDataType(_NUMBERS_OF_CODES[word], bits, 1)


_given: dict[int, tuple[Any, ...]] = {}  # exported tensors, by the address of their descriptions


@_DELETER
def _give_back(managed: Any) -> None:
    _given.pop(ctypes.addressof(managed.contents), None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _end_of_capsule(capsule: int) -> None:
    if _is_valid(capsule, _NEW):  # not consumed
        _given.pop(_pointer_of(capsule, _NEW), None)


def capsule_of(array: DeviceArray) -> Any:
    """Returns a capsule that shares the array's memory."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    managed = _DLManagedTensor()
    managed.dl_tensor = _DLTensor(array.pointer, _DLDevice(CUDA, array.device), array.ndim, _dl_type(array.type),
                                  ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), None, 0)
    managed.deleter = _give_back
    _given[ctypes.addressof(managed)] = (managed, shape, array)
    return _api.PyCapsule_New(ctypes.addressof(managed), _NEW, ctypes.cast(_end_of_capsule, ctypes.c_void_p))


def is_on_gpu(value: Any) -> bool:
    return isinstance(value, DeviceArray) or (
        hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) == CUDA)


def device_array(value: Any) -> DeviceArray:
    """Imports a GPU tensor of any DLPack producer; shares its memory."""
    if isinstance(value, DeviceArray):
        return value
    if getattr(value, "requires_grad", False) and hasattr(value, "detach"):
        value = value.detach()
    capsule = value.__dlpack__(stream=1)  # makes the default stream, for which a run waits, wait for the producer's
    if not _api.PyCapsule_IsValid(capsule, _NEW):
        raise UsageError("what __dlpack__ gives is no capsule of a tensor, or was used before")
    managed = ctypes.cast(_api.PyCapsule_GetPointer(capsule, _NEW), ctypes.POINTER(_DLManagedTensor))
    _api.PyCapsule_SetName(capsule, _USED)
    owner = _Borrowed(managed, capsule)
    tensor = managed.contents.dl_tensor
    if tensor.device.device_type != CUDA:
        raise UsageError(f"a tensor of DLPack's device type {tensor.device.device_type} where one of a GPU is expected")
    if tensor.device.device_id != 0:
        raise UsageError(f"a tensor on the GPU {tensor.device.device_id}: programs run on the first one")
    shape = [tensor.shape[k] for k in range(tensor.ndim)]
    stride = 1
    for extent, k in zip(reversed(shape), reversed(range(tensor.ndim))):
        if tensor.strides and extent != 1 and tensor.strides[k] != stride and 0 not in shape:
            raise UsageError("a tensor on the GPU does not lie row by row; copy it: tensor.contiguous()")
        stride *= extent
    code, bits = _CODES.get(tensor.dtype.code), tensor.dtype.bits
    if code is None or tensor.dtype.lanes != 1:
        raise UsageError(f"an element type of DLPack's that Tenon does not have: code {tensor.dtype.code}, {bits} bits")
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, "bool" if code == "bool" else f"{code}{bits}",
                       tensor.device.device_id, owner)


__all__ = ["DeviceArray"]
