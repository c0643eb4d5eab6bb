import signal
import sys
from pathlib import Path

# Helper modules lie beside the tests that use them.
for folder in Path(__file__).parent.iterdir():
    if folder.is_dir():
        sys.path.append(str(folder))

# A shell that starts us in the background has us ignore Ctrl-C, and what we start with us; tests of
# Ctrl-C need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
