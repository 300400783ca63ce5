"""A Ray that tells nobody of its use, and whose password is of these tests alone and in no file."""

import os
import secrets

# Before Ray is imported, which reads them once.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
os.environ.pop("RAY_ADDRESS", None)
