"""`check --model`: what is wrong with the positions of somebody's own model, from hooks on it while it runs.

Shapes: B batch, H heads, T queries, S keys, D head channels, C model channels.
"""
