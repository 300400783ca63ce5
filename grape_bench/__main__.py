"""`python -m grape_bench` is `grape-bench`."""

import sys

from grape_bench.cli import main

if __name__ == "__main__":  # worker processes import this file too
    sys.exit(main())
