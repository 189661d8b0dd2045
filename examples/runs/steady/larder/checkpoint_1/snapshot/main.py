import sys

from larder.cli import Cli

if __name__ == "__main__":
    sys.exit(Cli(sys.stdout, sys.stderr).main(sys.argv[1:]))
