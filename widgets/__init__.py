"""Textual widgets that know no machine and no disk: they show values and say what the user did."""
