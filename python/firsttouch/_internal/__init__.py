"""What firsttouch's own modules share; no part of the public interface."""
