"""What two sets of tasks, dialogues or texts share that they must not."""

from muarl.overlap.between import Overlap as Overlap
from muarl.overlap.between import Shared as Shared
from muarl.overlap.between import between as between
from muarl.overlap.items import Item as Item
from muarl.overlap.items import of_dialogue as of_dialogue
from muarl.overlap.items import of_record as of_record
from muarl.overlap.items import of_task as of_task
from muarl.overlap.items import of_text as of_text
from muarl.overlap.tasks import NEAR as NEAR
from muarl.overlap.tasks import NearDuplicates as NearDuplicates
from muarl.overlap.tasks import Pair as Pair
from muarl.overlap.tasks import Traits as Traits
from muarl.overlap.tasks import deed_of as deed_of
from muarl.overlap.tasks import near_duplicates as near_duplicates
