"""How an exercise can end."""

# So begins the reason where the machine was to blame, so that it is no verdict for good.
NO_KERNEL = "no kernel could be started for it"

# What a run can find out.
FROM_RUN = (
    "passed",
    "failed",
    "raised",
    "timed_out",
    "kernel_died",
    "not_attempted",
    "missing",
    "refused",
    "unreadable",
)

# And what it cannot: a test said a part of the points, or a person has to.
EVERY = (*FROM_RUN, "partial", "needs_person")
