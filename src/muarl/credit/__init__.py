"""Credit: which of an episode's turns earned its advantage.

One file for each method, all over the same finished episodes and all pure functions. With weight 0
every one of them is plain GRPO, exactly. Reading order:

    scored       the scored episodes of one task, and how credit is laid over their advantages
    assign       from a group and the run's choice to a number for each turn
    discounted, gigpo, information, reaction, influence, checklist
                 the methods; docs/credit.md sets them side by side
    states       the world before each turn, as a key, from the record alone
    provenance   which turn's answer a call's arguments came from
"""

from muarl.credit.assign import Credited as Credited
from muarl.credit.assign import turn_advantages as turn_advantages
from muarl.credit.scored import Measured as Measured
