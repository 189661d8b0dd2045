"""Bridges through which other systems that train and evaluate have submissions evaluated."""
