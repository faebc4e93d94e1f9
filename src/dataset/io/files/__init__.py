"""Files: opening, block-wise reading, compression, listing and atomic writing; remote files are in remote/."""
