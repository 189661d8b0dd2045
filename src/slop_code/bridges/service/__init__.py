"""Reward service: evaluations over HTTP."""
