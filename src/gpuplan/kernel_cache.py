"""Compiled kernels on disk: a help, never a condition.

A cache that cannot be written, was cut short, is of another version or was damaged costs a
compilation and a remark. What is loaded carries a digest over its own bytes and the text of the
kernels: half a file, or one that an interrupted run left under a new index, is never run.
Versions of the compiler keep files of their own, and each file names what it was compiled for:
processes that compile at the same time take nothing from each other.
"""

import pickle
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar
from warnings import warn

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
DIGEST_BYTES = 32
FORMAT = "2"
# What of the compiler's own cache is used here; where a version lacks it, nothing is kept.
NEEDED: tuple[str, ...] = (
    "_source_stamp",
    "_load_index",
    "_load_data",
    "_save_data",
    "_open_for_write",
    "_dump",
)
NEEDED += ("_version", "_index_path", "_data_name_pattern", "load", "save")
FIX = "set NUMBA_CACHE_DIR to a folder that can be written, to compile only once"

_remarked: set[str] = set()


class KernelCacheWarning(RuntimeWarning):
    """Compiled kernels could not be kept or loaded; answers are the same, only later."""


def cached(
    compile_with: Callable[..., Any],
    function: Kernel,
    options: Mapping[str, Any],
    *,
    stamp: str,
    is_light: bool = True,
) -> Kernel:
    """The compiled function, kept on disk for as long as the stamp is the same, where it can be.

    Light kernels make no arrays: they are loaded without what the compiler knows of numpy.
    """
    try:
        compiled: Any = compile_with(cache=True, **options)(function)
    except (RuntimeError, OSError) as error:
        if isinstance(error, RuntimeError) and "cache" not in str(error):
            raise
        _remark(f"compiled kernels are not cached (no folder for them); {FIX}")
        return compile_with(**options)(function)  # type: ignore[no-any-return]
    cache = getattr(compiled, "_cache", None)
    stored = getattr(cache, "_cache_file", None)
    if cache is None or stored is None:
        return compiled  # type: ignore[no-any-return]
    if not all(hasattr(stored, name) for name in NEEDED):
        # Nothing would tell stale or damaged code from sound: none is kept.
        return compile_with(**options)(function)  # type: ignore[no-any-return]
    load = getattr(cache, "_load_overload", cache.load_overload)
    _guard(cache, stored, stamp, load if is_light else cache.load_overload)
    return compiled  # type: ignore[no-any-return]


def _guard(cache: Any, stored: Any, stamp: str, load: Callable[..., Any]) -> None:
    # The compiler compares a kernel with its own file alone, though callees are inlined.
    stored._source_stamp = f"{FORMAT} {stamp}"
    # It takes the index of another version for an empty one, and would write over it.
    stored._index_path = stored._index_path.removesuffix("nbi") + f"{stored._version}.nbi"
    stored._data_name_pattern = f"{stored._version}.{stored._data_name_pattern}"
    stored.save = lambda key, data, save=stored.save: save(key, (key, data))
    stored.load = partial(_found, stored.load)
    stored._load_index = partial(_index, stored._load_index)
    stored._load_data = partial(_data, stored)
    stored._save_data = partial(_save, stored)
    cache.save_overload = partial(_saved, cache.save_overload)
    cache.load_overload = partial(_loaded, load)


def _found(load: Callable[..., Any], key: Any) -> Any:
    """What was compiled for this key; two processes may have given one file to two keys."""
    compiled_for, data = load(key) or (None, None)
    return data if compiled_for == key else None


def _index(load: Callable[[], Any]) -> dict[Any, Any]:
    """Which file holds what; an index that cannot be read counts as empty, and is written anew."""
    try:
        found = load()
    except Exception as error:  # noqa: BLE001  (bytes of any kind may be in the file)
        _remark(f"a damaged index of compiled kernels is made anew ({type(error).__name__})")
        return {}
    return found if isinstance(found, dict) else {}


def _data(stored: Any, name: str) -> Any:
    """What was compiled; an OSError, which the compiler takes for an absent file, if unsound."""
    with open(stored._data_path(name), "rb") as file:  # noqa: PTH123  (the compiler's own paths)
        digest, body = file.read(DIGEST_BYTES), file.read()
    if digest != _digest(stored, body):
        if body:
            _remark("a damaged file of compiled kernels is made anew")
        raise OSError("damaged")
    return pickle.loads(body)


def _save(stored: Any, name: str, data: Any) -> None:
    body = stored._dump(data)
    with stored._open_for_write(stored._data_path(name)) as file:
        file.write(_digest(stored, body) + body)


def _digest(stored: Any, body: bytes) -> bytes:
    return sha256(stored._source_stamp.encode() + b"\0" + body).digest()


def _saved(save: Callable[..., None], signature: Any, data: Any) -> None:
    try:
        save(signature, data)
    except OSError as error:
        _remark(f"compiled kernels are not cached ({error.strerror or error}); {FIX}")


def _loaded(load: Callable[..., Any], signature: Any, context: Any) -> Any:
    """What was compiled before, or nothing.

    The compiler would first load all it knows of numpy and scipy, half a second. Light kernels
    need none of that to run, and a compilation loads it by itself.
    """
    try:
        return load(signature, context)
    except Exception as error:  # noqa: BLE001  (modules that are gone, other versions of Python)
        _remark(f"compiled kernels of before cannot be used ({type(error).__name__}): made anew")
        return None


def _remark(what: str) -> None:
    if what not in _remarked:
        _remarked.add(what)
        warn(what, KernelCacheWarning, stacklevel=2)
