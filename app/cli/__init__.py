"""The command line: one small module for each group of commands, imported when it is asked for.

Every command is a function that takes the parsed arguments and an `Output` and returns the exit
status. Nothing at the top of these modules may be slow to import.
"""
