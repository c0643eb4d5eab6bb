"""`turn_tokens.py` under the name that the list of benchmarks gives it: `tokenize`.

    python benchmarks/tokenize.py --json

The standard library has a module of that name, and this folder is the first on the path of every
script in it. So this file steps aside where that module is meant.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from runpy import run_path

_HERE = Path(__file__).resolve().parent
_ELSEWHERE = [path for path in sys.path if Path(path or ".").resolve() != _HERE]

if __name__ == "__main__":
    sys.path = _ELSEWHERE
    run_path(str(_HERE / "turn_tokens.py"), run_name="__main__")
else:
    _meant = PathFinder.find_spec(__name__, _ELSEWHERE)
    if _meant is None or _meant.loader is None:
        raise ImportError("the standard library has no tokenize")
    sys.modules[__name__] = module_from_spec(_meant)
    _meant.loader.exec_module(sys.modules[__name__])
