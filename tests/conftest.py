"""Settings for the whole suite: generated examples are the same in every run, and never timed."""

from hypothesis import settings

# Time belongs in benchmarks: a deadline would fail on a busy machine. Fixed examples make every
# failure repeatable.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")
