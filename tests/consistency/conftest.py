"""Settings of the drawn scenarios, and plans of them, made once."""

from hypothesis import HealthCheck, Phase, settings

from consistency.strategies import N_EXAMPLES

# A plan takes a second: no time limit, and nothing is kept between runs but what hypothesis keeps.
settings.register_profile(
    "consistency",
    deadline=None,
    max_examples=max(1, N_EXAMPLES // 10),
    derandomize=N_EXAMPLES == 300,
    print_blob=True,
    # A failing scenario is small enough to read: shrinking it would take minutes of planning.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
