"""Command line interface, ``python -m dataset tfrecord ...``: one module for each command. Read main.py first.

Commands use the rest of the library; no other code uses them. A command module has a function ``add``, which declares
its arguments, and a function ``run``, which does the work and returns the exit status. They share these modules:

    common_options.py    common options                     inputs.py            the files named on the command line
    terminal.py          output of text, tables and JSON    outputs.py           atomic writing of new TFRecord files
    progress_bar.py      progress bar                       record_content.py    the content of a record
    looks.py             content type detection             feature_summary.py   summary of the features of many records
"""
