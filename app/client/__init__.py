"""What the command line and the screens use to find sessions and to talk to their keepers.

`fleet` knows every session of the user from disk; `SessionClient` is one connection to one keeper.
Nothing here loads Textual.
"""
