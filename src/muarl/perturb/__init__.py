"""Perturbations: users and tools less clean than a simulation makes them, seeded and recorded.

Wrappers around the user (observation) and the tool server (observation, action, metadata, transition)
of one dialogue. They say and refuse; they never touch a world, a reward or a draw of the policy. In
which order they lie around each other: docs/robustness.md.
"""

from muarl.perturb.dialogue import Perturbations as Perturbations
