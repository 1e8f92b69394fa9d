"""Warm, sandboxed kernels: torch is imported once, each notebook gets a fork of its own in a cell.

    worker.py       the host's side: starts a warm process in bubblewrap, asks it for kernels
    sandbox.py      the bubblewrap command: what a warm process can see
    server.py       inside: forks a kernel for each request
    kernel.py       inside: imports torch and all that a kernel needs, before the first fork
    app.py          inside: ipykernel in two halves, one before the fork, one after it
    nest.py         inside, after the fork: own namespaces, own /tmp, limits, no capabilities
    guard.py        inside, beside the kernel: how much memory all its processes hold
    provisioner.py  what jupyter_client calls, so that nbval, nbclient and nbconvert profit by name

Nothing that runs on the host's side imports torch.
"""
