"""The verbs over HTTP: questions become jobs, answers stay."""
