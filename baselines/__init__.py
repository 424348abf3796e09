"""Methods to compare with, all behind the contract of `bci.method`."""
