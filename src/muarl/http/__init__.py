"""HTTP as a client: sending, trying again, leaving a broken endpoint alone, keys."""
