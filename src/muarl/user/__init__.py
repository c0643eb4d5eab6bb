"""Users: simulators that talk with the policy, behind one protocol."""

from muarl.user.protocol import ActingUser as ActingUser
from muarl.user.protocol import Device as Device
from muarl.user.protocol import User as User
from muarl.user.protocol import hand_over as hand_over
