"""The Textual application: screens, dialogs and their styles."""
