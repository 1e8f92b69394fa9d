"""Set-up on Colab, with nothing but the standard library.

Every notebook opens with the same cell; on a machine that has PyTorch Lab it does nothing.
"""
