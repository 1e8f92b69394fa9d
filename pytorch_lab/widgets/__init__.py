"""The pictures: `show.show(x)` for records and live objects, and the pieces lessons are made of.

Importing this package imports none of them: `lab.show` loads the file it stands in.
"""
