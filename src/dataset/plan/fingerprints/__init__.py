"""Fingerprints of plans: one for saved states, one over all content, and what tells two plans apart."""
