"""Evaluation of many checkpoints: discover, plan, schedule, summarise."""
