"""What happens where memory is out."""
