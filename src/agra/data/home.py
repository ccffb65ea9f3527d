"""The data home: the folder that holds data sets, each file under a fixed relative path."""

import os
from pathlib import Path

VARIABLE = "AGRA_DATA_HOME"


def data_home(home: str | Path | None = None) -> Path:
    """The folder that holds data sets; it need not exist yet.

    Args:
        home: Wins if given. Then comes the environment's ``AGRA_DATA_HOME``, then the user's cache
            folder.

    Raises:
        ImportError: Only the cache folder is left, and platformdirs, which knows it, is missing.

    Example:
        >>> data_home("/data/noisy").as_posix()
        '/data/noisy'
    """
    given = home or os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    try:
        import platformdirs
    except ImportError:
        raise ImportError(
            "Expected platformdirs to be installed to find the user's cache folder; "
            f"pip install 'agra[data]', or let {VARIABLE} or `home` name a data home."
        ) from None
    return Path(platformdirs.user_cache_dir("agra")) / "data"


def inside(folder: Path, relative: str) -> Path:
    """The path below a folder, which no part of it may leave.

    Raises:
        ValueError: An absolute path, a drive, or a step upwards.

    Example:
        >>> inside(Path("home"), "text/sms/train.json").as_posix()
        'home/text/sms/train.json'
    """
    parts = relative.replace("\\", "/").split("/")
    if not parts[0] or ":" in parts[0] or ".." in parts:  # absolute, on a drive, or upwards
        raise ValueError(f"Expected a path that stays inside of {folder}, got {relative!r}.")
    return folder.joinpath(*parts)
