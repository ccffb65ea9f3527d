"""Files of other people's formats to data sets. One file per format, none of them executed."""
