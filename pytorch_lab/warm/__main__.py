"""What runs when a client starts the kernelspec as a plain command: a sentence, and no kernel."""

import sys

sys.exit(
    "expected jupyter_client to start this kernel through its provisioner 'pytorch-lab-warm', got "
    "a plain command; use a client built on jupyter_client 7 or newer, beside pytorch-lab[grade]."
)
