"""Records any harness: passes bytes between it and its server, keeps every exchange, can swap the interface.

::

    client -> Inbound -> Outbound -> upstream       one event loop: heads checked, bytes passed as they come
                  \\-> Pen -> Ring ->                 frames in shared memory; nothing waits for the disk
                                Recorder             a process of its own: run folder first, then verdicts

``Hub`` is the passing side, ``Pen`` its end of the recorder, ``editing`` what is changed where it was asked for.
"""

from truecall.proxy.hub import Hub
from truecall.proxy.pen import Orders, Pen
from truecall.proxy.settings import Limits, Settings

__all__ = ["Hub", "Limits", "Orders", "Pen", "Settings"]
