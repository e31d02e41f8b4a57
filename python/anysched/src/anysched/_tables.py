"""Tables of the native part as data frames."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from .errors import UsageError

if TYPE_CHECKING:
    from . import _core

Library = Literal["polars", "pandas", "pyarrow"]

_HOW = "pip install polars (or pandas and pyarrow)"


def there() -> Library:
    """The library of data frames that is used unless another is asked for."""
    if find_spec("polars"):
        return "polars"
    if find_spec("pandas"):
        return "pandas"
    raise UsageError(f"there is no library of data frames here; {_HOW}")


def frame(table: _core.Frame, library: Library | None = None) -> Any:
    """`table` as a data frame, which takes over its memory."""
    match library or there():
        case "polars":
            import polars

            return polars.DataFrame(table)
        case "pyarrow":
            return _arrow(table)
        case "pandas":
            import pandas

            return _arrow(table).to_pandas(types_mapper=pandas.ArrowDtype)
        case other:
            raise UsageError(f'no library "{other}": there are polars, pandas and pyarrow')


def _arrow(table: _core.Frame) -> Any:
    if not find_spec("pyarrow"):
        raise UsageError("pandas takes it from pyarrow, which is not here; pip install pyarrow")
    import pyarrow

    return pyarrow.table(table)


def of_dicts(rows: list[dict[str, Any]], library: Library | None = None) -> Any:
    """Rows as a data frame."""
    match library or there():
        case "polars":
            import polars

            return polars.DataFrame(rows, infer_schema_length=None)
        case "pandas":
            import pandas

            return pandas.DataFrame(rows)
        case "pyarrow":
            import pyarrow

            return pyarrow.Table.from_pylist(rows)
        case other:
            raise UsageError(f'no library "{other}": there are polars, pandas and pyarrow')
