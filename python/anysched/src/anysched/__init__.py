"""anysched: compare CPU scheduling policies, and write your own.

    import anysched

    result = anysched.run("experiments/quickstart.toml")
    result.frame()
"""

from ._core import __version__
from .errors import Error, ExperimentError, PolicyError, RunError, TraceError, UsageError
from .experiment import Experiment, PolicyLike, run
from .policy import Key, Policy, RunQueue, Task, Why, ns
from .result import Claim, Result, Row, Timeline
from .sweep import sweep
from .trace import Trace, read_trace, trace_formats
from .tune import Space, tune

__all__ = [
    "Claim",
    "Error",
    "Experiment",
    "ExperimentError",
    "Key",
    "Policy",
    "PolicyError",
    "PolicyLike",
    "Result",
    "Row",
    "RunError",
    "RunQueue",
    "Space",
    "Task",
    "Timeline",
    "Trace",
    "TraceError",
    "UsageError",
    "Why",
    "__version__",
    "ns",
    "read_trace",
    "run",
    "sweep",
    "trace_formats",
    "tune",
]
