"""Executor for a Ray cluster."""
