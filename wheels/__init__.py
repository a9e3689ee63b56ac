"""Builds the wheels to publish and the sdist, audits them, and tries each one in a fresh environment."""
