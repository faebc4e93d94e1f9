"""Pictures: JPEG, PNG, GIF and BMP into arrays and back, and to another size. Open codecs.py first."""
