"""Bridges to other systems that train and evaluate: what they ask for is evaluated here."""
