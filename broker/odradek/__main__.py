"""`python -m odradek`: see `odradek.cli`."""

import sys

from odradek.cli import main

sys.exit(main())
