"""Looks at a machine: what muarl can do here, what is missing, and the command that adds it."""

from muarl.doctor.finding import Finding as Finding
from muarl.doctor.finding import State as State
