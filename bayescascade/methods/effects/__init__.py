"""What a treatment does to each row: one function, learned from outcomes of which half are seen."""
