# SPDX-License-Identifier: BSD-2-Clause
"""What the tests change for the programs that they start: a runtime directory apart, no UROCE_*."""
import atexit
import os
import shutil
import signal
import sys
import tempfile

SKIPPED = 77


def apart_from_the_user():
    """So that neither the user's configuration nor a running program of his takes part."""
    for name in [name for name in os.environ if name.startswith("UROCE_")]:
        if name != "UROCE_TEST_DEADLINE":
            del os.environ[name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything is cleaned up
    directory = tempfile.mkdtemp(prefix="uroce-apps-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ["XDG_RUNTIME_DIR"] = directory
    os.environ["XDG_CONFIG_HOME"] = directory
    return directory


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)
