"""Behaviours that make a user harder to serve than she need be, each with a rate.

A behaviour looks at what she heard before her plain answer is made, and may put a move of its own in
its place; the first that does counts. Under all of them but `abandon` what an agent needs stays
within its reach: nothing is refused twice, no interruption follows another, and what she tells is
never garbled. So an agent that asks again loses nothing but turns.

| file            | knobs                                     |
|-----------------|-------------------------------------------|
| `leaving`       | `abandon`                                 |
| `interrupting`  | `silence`, `digress`                      |
| `asides`        | `unavailable`                             |
| `refusals`      | `push_back`                               |
| `claims`        | `accept_false`, `challenge_done`          |
| `answering`     | `partial`, `unsure`, `refuse`             |
| `changing`      | `change_request`                          |
| `slips`         | `typos`, in what she is about to say      |
| `muarl.user.flow` | `withhold`, `no_follow_up`: how she makes her requests |
"""

from muarl.user.knobs.answering import evade
from muarl.user.knobs.asides import ask_aside, settle_aside
from muarl.user.knobs.changing import change
from muarl.user.knobs.claims import accept_false, challenge_done
from muarl.user.knobs.dice import Dice as Dice
from muarl.user.knobs.interrupting import interrupt
from muarl.user.knobs.leaving import leave
from muarl.user.knobs.refusals import push_back

BEHAVIOURS = (
    *(leave, interrupt),
    settle_aside,  # before what takes a refusal or a claim to be about her request
    *(push_back, challenge_done, ask_aside, evade, change, accept_false),
)
"""In the order in which they are asked."""
