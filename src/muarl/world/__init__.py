"""Worlds: the mutable state behind a dialogue's tools.

A world is a JSON document shared by all dialogues (the base) plus the writes of one dialogue (the
overlay). A node of the overlay is created when a tool first touches it; the base is never written.
A fork shares the base and copies the nodes that were written, so that its cost is that of the
writes, whatever was read and however large the base. Equality is canonical: key order is free and
`3 == 3.0`; `True` is not `1`. A difference is explained path by path.
"""

from muarl.world.compare import Change as Change
from muarl.world.compare import Json as Json
from muarl.world.compare import canonical_diff as canonical_diff
from muarl.world.compare import diff as diff
from muarl.world.compare import equal as equal
from muarl.world.compare import plain as plain
from muarl.world.nodes import ListNode as ListNode
from muarl.world.nodes import MapNode as MapNode
from muarl.world.patch import apply_changes as apply_changes
from muarl.world.paths import Key as Key
from muarl.world.paths import lookup as lookup
from muarl.world.paths import place as place
from muarl.world.paths import split as split
from muarl.world.world import World as World
from muarl.world.world import WorldProxy as WorldProxy
from muarl.world.world import overwrite as overwrite
from muarl.world.world import put as put
