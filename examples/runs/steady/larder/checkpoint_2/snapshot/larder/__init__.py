"""Recipes, read and scaled exactly."""
