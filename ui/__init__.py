"""What screens share: text, charts, parts, cached reads."""
