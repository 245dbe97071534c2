"""What makes the loops fast: the machine description, transforms of ranges, and what chooses."""
