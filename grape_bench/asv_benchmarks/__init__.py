"""What asv discovers, and nothing else: asv imports this folder as a package of its own, from the working tree."""
