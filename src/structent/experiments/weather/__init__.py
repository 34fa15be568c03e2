"""Problems 2 and 3 of the paper: months and counties of California, from daily weather."""
