"""Joins machines and trees: command line, keeper, services and the Textual application."""
