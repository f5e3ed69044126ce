"""ONNX Runtime's exceptions. Each is also the exception of Tenon's that it stands for."""

from __future__ import annotations

import contextlib
from typing import Iterator

from ._library import DeviceError, Error, InternalError, InvalidModelError, OutOfMemoryError, UnsupportedError, UsageError


class Fail(Error, RuntimeError):
    pass


class InvalidArgument(UsageError):
    pass


class NoSuchFile(UsageError, FileNotFoundError):
    pass


class NoModel(UsageError):
    pass


class EngineError(Error):
    pass


class RuntimeException(Error, RuntimeError):
    pass


class InvalidProtobuf(InvalidModelError):
    pass


class ModelLoaded(Error):
    pass


class NotImplemented(UnsupportedError):  # noqa: A001
    pass


class InvalidGraph(InvalidModelError):
    pass


class EPFail(DeviceError):
    pass


class _OutOfMemory(OutOfMemoryError, Fail):
    pass


class _Internal(InternalError, RuntimeException):
    pass


_NAMES = ((UsageError, InvalidArgument), (InvalidModelError, InvalidGraph), (UnsupportedError, NotImplemented),
          (OutOfMemoryError, _OutOfMemory), (DeviceError, EPFail), (InternalError, _Internal))
_OWN = (Fail, InvalidArgument, NoSuchFile, NoModel, EngineError, RuntimeException, InvalidProtobuf, ModelLoaded,
        NotImplemented, InvalidGraph, EPFail)


@contextlib.contextmanager
def ort_errors() -> Iterator[None]:
    """Raises errors of the library as ONNX Runtime names them, with the same text."""
    try:
        yield
    except _OWN:
        raise
    except Error as error:
        for kind, name in _NAMES:
            if isinstance(error, kind):
                raise name(str(error)) from None
        raise Fail(str(error)) from None
