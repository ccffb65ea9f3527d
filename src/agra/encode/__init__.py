"""Raw inputs to rows of numbers, fitted on the training split only."""
