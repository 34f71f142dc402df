"""Settings for all tests."""

from hypothesis import settings

# The machines tests run on are shared and slow now and then: a time limit per example would fail at random.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
