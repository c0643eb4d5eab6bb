"""`python -m muarl.cli`, the same as `muarl`."""

import sys

from muarl.cli import main

sys.exit(main())
