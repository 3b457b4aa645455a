"""``python -m truecall`` is the command ``truecall``."""

from truecall.cli import main

main()
