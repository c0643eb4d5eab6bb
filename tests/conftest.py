import sys
from pathlib import Path

# Helper modules lie beside the tests that use them.
for folder in Path(__file__).parent.iterdir():
    if folder.is_dir():
        sys.path.append(str(folder))
