"""The cells of the experiment `touch`, and what it says about them."""
