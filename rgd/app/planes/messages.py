"""What a frame of the link is: three parts, the first of which is made of these.

From the plane: a function or the name of a method, and its arguments. From the gate: an answer, or a note.
"""

from typing import Final

#: Nothing is answered.
TELL: Final = 0
#: The sender waits for `REPLY` or `FAULT`.
ASK: Final = 1
#: It names a method of the gate's process; without it, it is a function of the gate.
HOST: Final = 2

#: What was asked for, and the slot ids of groups that are gone since the last answer.
REPLY: Final = 0
#: An exception.
FAULT: Final = 1
#: The name of a method of the plane's process, and its arguments.
NOTE: Final = 2
