"""Test support: modules that several test packages use."""
