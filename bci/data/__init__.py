"""Where data sets come from: simulated models, the Sachs data, CSV files."""
