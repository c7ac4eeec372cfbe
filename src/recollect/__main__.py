"""``python -m recollect``: the command line."""

import sys

from recollect_command import main

if __name__ == "__main__":
    sys.exit(main())
