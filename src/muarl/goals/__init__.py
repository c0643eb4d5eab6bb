"""Tasks from goals: what users of a domain may want, drawn, composed and proved one by one.

An author writes goals, small functions over a world; `compose` makes tasks of them whose gold calls are
known, whose outcome is unique, and which are balanced along axes. See docs/task-generation.md.
"""

from muarl.goals.apart import composed_apart as composed_apart
from muarl.goals.axes import AXES as AXES
from muarl.goals.axes import histogram as histogram
from muarl.goals.compose import Composed as Composed
from muarl.goals.compose import Composition as Composition
from muarl.goals.compose import compose as compose
from muarl.goals.errors import GoalError as GoalError
from muarl.goals.goal import Goals as Goals
from muarl.goals.goal import Unfit as Unfit
from muarl.goals.goal import Wish as Wish
from muarl.goals.goal import call as call
from muarl.goals.goal import user_call as user_call
from muarl.goals.prove import Stage as Stage
from muarl.goals.scene import Scene as Scene
