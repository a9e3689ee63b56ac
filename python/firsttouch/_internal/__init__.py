"""Shared helpers of firsttouch's modules; not part of the public interface."""
