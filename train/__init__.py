"""One readable script per task, and what they share."""
