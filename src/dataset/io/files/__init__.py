"""Files: opening, reading by blocks, compression, listing, and writing whole or not at all; remote ones in remote/."""
