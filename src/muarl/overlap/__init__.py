"""What two sets of tasks share that must not: tasks that are the same, or nearly."""

from muarl.overlap.tasks import NEAR as NEAR
from muarl.overlap.tasks import NearDuplicates as NearDuplicates
from muarl.overlap.tasks import Pair as Pair
from muarl.overlap.tasks import Traits as Traits
from muarl.overlap.tasks import deed_of as deed_of
from muarl.overlap.tasks import near_duplicates as near_duplicates
