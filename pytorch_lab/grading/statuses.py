"""How an exercise can end."""

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
