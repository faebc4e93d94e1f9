"""Image codecs: decode and encode JPEG, PNG, GIF and BMP, and resize. Start reading at codecs.py."""
