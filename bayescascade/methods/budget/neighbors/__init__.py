"""Features acquired row by row: a row's neighbors in the measured features choose the next one."""
