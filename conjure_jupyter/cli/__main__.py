"""``python -m conjure_jupyter.cli``, for where the ``conjure`` command is not on the path."""

import sys

from . import main

sys.exit(main())
