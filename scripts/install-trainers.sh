#!/usr/bin/env bash
# usage: scripts/install-trainers.sh VENV
# Installs TRL and verl into VENV/trainers, a folder that only the tests which let them read an export put on
# their path. With --no-deps: torch and transformers are muarl's own (verl asks for an older transformers and
# OmegaConf's parser, and its trainers for much more), and its data sets need no more than what is named here.
set -euo pipefail
folder=$1/trainers
rm -rf "$folder"
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$folder" \
  "trl==1.16.0" "accelerate==1.15.0" "psutil==7.2.2" \
  "verl==0.9.1" "tensordict==0.10.0" "pyvers==0.1.0" "ray==2.60.0" "omegaconf==2.4.0" "codetiming==1.4.0" \
  "cloudpickle==3.1.3" "orjson==3.13.0" "msgpack==1.2.4" "importlib_metadata==10.2.0" "zipp==4.1.2"
PYTHONPATH=$folder "$1/bin/python" -c 'import trl, verl; print("trl", trl.__version__, "verl", verl.__version__)'
