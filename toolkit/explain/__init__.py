"""What a transformer does, number by number: pages made of records of real passes, for the terminal and the browser."""
