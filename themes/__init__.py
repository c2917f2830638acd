"""Themes as data: palettes, glyph sets and the style rules that every screen shares."""
