"""ctypes bindings of libtenon's C interface (include/tenon/tenon.h)."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any, Iterable

ABI_VERSION = 2


class Error(Exception):
    """An error of the library with its message; `status` is the corresponding exit code of the command."""

    status = 7

    def __init__(self, text: str) -> None:
        super().__init__(text)


class ComparisonFailed(Error):
    status = 1


class UsageError(Error, ValueError):
    """A request for something that does not exist or is inconsistent."""

    status = 2


class InvalidModelError(Error):
    status = 3


class UnsupportedError(Error, NotImplementedError):
    status = 4


class OutOfMemoryError(Error, MemoryError):
    status = 5


class DeviceError(Error):
    status = 6


class InternalError(Error):
    status = 7


_ERRORS = {kind.status: kind for kind in (
    ComparisonFailed, UsageError, InvalidModelError, UnsupportedError, OutOfMemoryError, DeviceError, InternalError)}


def error_of(status: int, text: str) -> BaseException:
    if status == 130:
        return KeyboardInterrupt(text)
    return _ERRORS.get(status, InternalError)(text)


class CTensor(ctypes.Structure):
    """tenon_tensor"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class CPort(ctypes.Structure):
    """tenon_port"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


def _candidates() -> Iterable[Path]:
    here = Path(__file__).resolve().parent
    if "TENON_LIBRARY" in os.environ:
        yield Path(os.environ["TENON_LIBRARY"])
        return
    yield here / "lib" / "libtenon.so.1"  # an installed package
    yield here.parent.parent / "build" / "release" / "lib" / "libtenon.so.1"  # the source tree


def _load() -> ctypes.CDLL:
    tried = []
    for path in _candidates():
        if path.exists():
            return ctypes.CDLL(str(path))
        tried.append(str(path))
    raise ImportError("tenon: there is no libtenon.so.1; looked for " + ", ".join(tried) +
                      ". In a source tree `tools/build release tenon_shared` builds it")


lib = _load()

_H = ctypes.c_void_p
_P = ctypes.POINTER
_TEXT = ctypes.c_char_p
_SIZE = ctypes.c_size_t
_OUT_TEXT = _P(ctypes.c_void_p)
_TENSORS = _P(CTensor)

_SIGNATURES: dict[str, list[Any]] = {
    "tenon_model_open": [_TEXT, _P(_H)],
    "tenon_model_parse": [ctypes.c_char_p, _SIZE, _P(_H)],
    "tenon_model_describe": [_H, _OUT_TEXT],
    "tenon_model_save": [_H, _TEXT, _TEXT],
    "tenon_model_transform": [_H, _TEXT, _P(_H)],
    "tenon_model_compile": [_H, _TEXT, _P(_H)],
    "tenon_model_free": [_H],
    "tenon_program_load": [_TEXT, _P(_H)],
    "tenon_program_parse": [ctypes.c_char_p, _SIZE, _P(_H)],
    "tenon_program_save": [_H, _TEXT, _TEXT],
    "tenon_program_describe": [_H, _OUT_TEXT],
    "tenon_program_port_count": [_H, ctypes.c_int, _P(_SIZE)],
    "tenon_program_port": [_H, ctypes.c_int, _SIZE, _P(CPort)],
    "tenon_program_set_weight": [_H, _TEXT, _TENSORS],
    "tenon_program_free": [_H],
    "tenon_context_create": [_H, _TEXT, _P(_H)],
    "tenon_context_run": [_H, _TENSORS, _SIZE, _TENSORS, _SIZE],
    "tenon_context_start": [_H, _TENSORS, _SIZE, _TENSORS, _SIZE],
    "tenon_context_finish": [_H],
    "tenon_context_bind": [_H, _TENSORS, _SIZE, _TENSORS, _SIZE],
    "tenon_context_watch": [_H, _TENSORS, _SIZE, _TENSORS, _SIZE, _OUT_TEXT],
    "tenon_context_describe": [_H, _OUT_TEXT],
    "tenon_context_read_state": [_H, _TEXT, _TENSORS],
    "tenon_context_write_state": [_H, _TEXT, _TENSORS],
    "tenon_context_bind_state": [_H, _TEXT, _TENSORS],
    "tenon_context_reset_states": [_H],
    "tenon_context_fork": [_H, _P(_H)],
    "tenon_context_free": [_H],
    "tenon_value_tensor": [_TENSORS, _P(_H)],
    "tenon_value_strings": [_P(ctypes.c_char_p), _P(_SIZE), _P(ctypes.c_int64), ctypes.c_int32, _P(_H)],
    "tenon_value_sequence": [_P(_H), _SIZE, ctypes.c_int32, _P(_H)],
    "tenon_value_optional": [_H, _P(_H)],
    "tenon_value_look": [_H, _P(ctypes.c_int), _TENSORS, _P(_SIZE)],
    "tenon_value_item": [_H, _SIZE, _P(_H)],
    "tenon_value_string": [_H, _SIZE, _P(ctypes.c_void_p), _P(_SIZE)],
    "tenon_value_free": [_H],
    "tenon_context_run_values": [_H, _P(_H), _SIZE, _P(_H), _SIZE],
    "tenon_trainer_create": [_H, _TEXT, _P(_H)],
    "tenon_trainer_describe": [_H, _OUT_TEXT],
    "tenon_trainer_step": [_H, _TENSORS, _SIZE, _TENSORS, _SIZE],
    "tenon_trainer_state": [_H, _TEXT, _TENSORS],
    "tenon_trainer_set_state": [_H, _TEXT, _TENSORS],
    "tenon_trainer_model": [_H, _P(_H)],
    "tenon_trainer_save": [_H, _TEXT],
    "tenon_trainer_restore": [_H, _TEXT],
    "tenon_trainer_free": [_H],
    "tenon_plugin_load": [_TEXT],
    "tenon_devices": [_OUT_TEXT],
    "tenon_command": [_P(ctypes.c_char_p), _SIZE, _P(ctypes.c_int), _OUT_TEXT, _OUT_TEXT],
}
for _name, _types in _SIGNATURES.items():
    _function = getattr(lib, _name)
    _function.argtypes = _types
    _function.restype = ctypes.c_int
lib.tenon_version.restype = ctypes.c_char_p
lib.tenon_abi_version.restype = ctypes.c_int
lib.tenon_last_error.restype = ctypes.c_char_p
lib.tenon_text_free.argtypes = [ctypes.c_void_p]
lib.tenon_text_free.restype = None

if lib.tenon_abi_version() < ABI_VERSION:
    raise ImportError(f"tenon: the library has interface {lib.tenon_abi_version()}, this package needs {ABI_VERSION}")


def last_error() -> str:
    return lib.tenon_last_error().decode("utf-8", "replace")


def check(status: int) -> None:
    """Raises the error of this thread's last call."""
    if status != 0:
        raise error_of(status, last_error())


def take_text(text: ctypes.c_void_p) -> str:
    """Copies a text that the library allocated, and frees it."""
    try:
        return "" if text.value is None else ctypes.string_at(text.value).decode("utf-8", "replace")
    finally:
        lib.tenon_text_free(text)


def text_from(function: Any, *arguments: Any) -> str:
    text = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(text)))
    return take_text(text)


def json_from(function: Any, *arguments: Any) -> Any:
    return json.loads(text_from(function, *arguments))


def handle_from(function: Any, *arguments: Any) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(handle)))
    return handle


def options_text(options: dict[str, Any]) -> bytes:
    return json.dumps({name: value for name, value in options.items() if value is not None}).encode()


def command(*words: str) -> str:
    """Runs `tenon WORD…` and returns its output. Raises its error."""
    code, out, messages = run_command(*words)
    if code != 0:
        text = messages.strip() or out.strip()
        raise error_of(code, text[len("error: "):] if text.startswith("error: ") else text)
    return out


def run_command(*words: str) -> tuple[int, str, str]:
    """Runs `tenon WORD…` and returns its exit code, output and messages."""
    encoded = [str(word).encode() for word in words]
    array = (ctypes.c_char_p * len(encoded))(*encoded)
    code, out, messages = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    check(lib.tenon_command(array, len(encoded), ctypes.byref(code), ctypes.byref(out), ctypes.byref(messages)))
    return code.value, take_text(out), take_text(messages)


def load_plugin(path: Any) -> None:
    """Registers custom operators from a shared object (include/tenon/plugin.h) for models loaded afterwards."""
    check(lib.tenon_plugin_load(os.fspath(path).encode()))


def version() -> str:
    return lib.tenon_version().decode()


def devices() -> list[dict[str, Any]]:
    """Returns the devices of this machine, each with name, kind, usability, and a description."""
    return json_from(lib.tenon_devices)
