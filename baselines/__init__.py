"""Methods to compare with, one module each, behind the contract of `bci.method`."""
