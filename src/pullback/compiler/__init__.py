"""From a function to machine code; ``pipeline`` names the stages in order."""
