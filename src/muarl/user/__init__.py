"""Users: simulators that talk with the policy, behind one protocol."""

from muarl.user.protocol import User as User
