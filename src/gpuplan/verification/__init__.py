"""An independent checker of plans: own arithmetic on the plan's own document, no planner's code.

In: a plan as a document, and facts; out: checks, each with what is claimed and what was found.
"""
