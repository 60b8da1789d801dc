"""What was decided, why, and what would change it. Pure: data in, data out."""
