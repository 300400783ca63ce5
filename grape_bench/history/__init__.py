"""History: our records in asv's store, its pages offline, and steps in our own records, commit by commit."""
