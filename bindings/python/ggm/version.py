"""The version of this package: that of include/ggm/version.h, which a test compares."""
__version__ = "0.1.0"
