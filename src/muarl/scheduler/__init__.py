"""Many dialogues at once: groups, limits, deadlines, retries, the fuse, resume."""

from muarl.scheduler.admission import EpisodePlan as EpisodePlan
from muarl.scheduler.admission import Group as Group
from muarl.scheduler.fuse import Fuse as Fuse
from muarl.scheduler.limits import Limits as Limits
from muarl.scheduler.observer import Observer as Observer
from muarl.scheduler.scheduler import Groups as Groups
from muarl.scheduler.scheduler import blank_fault as blank_fault
from muarl.scheduler.scheduler import run_groups as run_groups
