"""Reasons of failed tests, in the messages that pytest reports."""
