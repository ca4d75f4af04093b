"""Jobs against a shared cluster: queues, gangs, quotas, fractions, failures, time-sharing."""
