"""The typed layer between the screens and the clients of the keeper. No Textual in here."""
