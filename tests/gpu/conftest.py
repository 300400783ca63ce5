"""A GPU for tests that have none."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the module that these tests share
