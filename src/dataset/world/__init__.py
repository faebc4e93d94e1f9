"""World: signals and forks, which interrupt what the library does."""
