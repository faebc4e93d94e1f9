"""Entry point of ``python -m dataset``; the commands are in commands/."""

import sys

from dataset.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
