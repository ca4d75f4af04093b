"""Rules by subject: telemetry in, findings with evidence out."""
