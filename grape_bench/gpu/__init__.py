"""Time on a GPU: its queue of work, two ways to time an operation, and a watch on what the GPU does meanwhile."""
