"""Command line interface, ``python -m dataset tfrecord ...``: one module for each command. Read main.py first.

Commands use the rest of the library; no other code uses them. A command module has a function ``add``, which declares
its arguments, and a function ``run``, which does the work and returns the exit status. The commands besides ``info``,
``index`` and ``verify`` are in further/. They share these modules, and display/:

    common_options.py    common options                     inputs.py            the files named on the command line
    command_errors.py    exit statuses and errors           outputs.py           atomic writing of new TFRecord files
"""
