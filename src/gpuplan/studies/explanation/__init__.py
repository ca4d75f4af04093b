"""Why this plan and no other: reasons, alternatives, rejected candidates, what binds."""
