"""Does what its first argument says."""

import sys

exec(sys.argv[1])
