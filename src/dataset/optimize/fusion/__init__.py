"""Rules that run several operations as one."""
